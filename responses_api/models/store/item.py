"""Items: immutable parts of a conversation, in wire form."""

from typing import ClassVar

from django.db import models

from responses_api.ids import MAX_CLIENT_ID_LENGTH
from responses_api.models.byte_length import ByteLength
from responses_api.protocol.json.reader import read_stored
from responses_api.protocol.objects import Item as ItemObject


class Item(models.Model):
    """One message, call, output or reasoning item, as sent or generated.

    ``wire_id`` is the id that clients see. Clients choose some of them, so it is unique neither in the store nor in a
    project. ``payload`` is the whole item as JSON text, its id included, and never changes.
    """

    project = models.ForeignKey("Project", on_delete=models.CASCADE, related_name="+")
    wire_id = models.CharField("id", max_length=MAX_CLIENT_ID_LENGTH)
    type = models.CharField(max_length=40)
    payload = models.TextField()
    size = models.GeneratedField(
        expression=ByteLength("payload"), output_field=models.IntegerField("bytes"), db_persist=True
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering: ClassVar = ["-pk"]
        indexes: ClassVar = [models.Index(fields=["project", "wire_id"], name="item_project_wire_id")]

    def __str__(self) -> str:
        return self.wire_id

    def wire(self) -> ItemObject:
        """The item as clients see it."""
        value: ItemObject = read_stored(self.payload)
        return value
