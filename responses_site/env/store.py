"""The store: what is stored, its limits, and for how long."""

from dataclasses import dataclass

from responses_site import setting_kinds as kinds
from responses_site.setting_kinds import BOOLEAN, MIB

from .declaration import setting


@dataclass(frozen=True, kw_only=True)
class StoreSettings:
    """The store: what is stored, its limits, and for how long."""

    store_default: bool = setting(
        "RESPONSES_STORE_DEFAULT", BOOLEAN, True, "Whether a response is stored when the request omits `store`."
    )
    store_ttl_seconds: int = setting(
        "RESPONSES_STORE_TTL_SECONDS",
        kinds.integer(0),
        2_592_000,
        "How long a stored response is kept after its end; 0 keeps it forever.",
    )
    store_max_entries: int | None = setting(
        "RESPONSES_STORE_MAX_ENTRIES",
        kinds.integer(0),
        None,
        "Maximum number of stored responses; beyond it, the least recently used one is evicted. 0 turns storing off.",
        default_text="none",
    )
    store_max_bytes: int | None = setting(
        "RESPONSES_STORE_MAX_BYTES",
        kinds.byte_count(0),
        None,
        "Maximum bytes of stored responses, with the same eviction; 0 evicts each at once. Running responses may use "
        "as many bytes again; a request beyond is answered 429.",
        default_text="none",
    )
    entry_max_bytes: int = setting(
        "RESPONSES_ENTRY_MAX_BYTES",
        kinds.byte_count(1),
        64 * MIB,
        "Maximum size of a stored response with its history; a larger one is answered 413, or fails when it ends.",
    )
    project_max_entries: int = setting(
        "RESPONSES_PROJECT_MAX_ENTRIES",
        kinds.integer(0),
        0,
        "Maximum number of stored responses per project, with eviction within the project; 0 means no limit.",
    )
    project_max_bytes: int = setting(
        "RESPONSES_PROJECT_MAX_BYTES",
        kinds.byte_count(0),
        0,
        "Maximum bytes of stored responses per project, with eviction within the project; 0 means no limit.",
    )
    conversation_store_max_entries: int | None = setting(
        "RESPONSES_CONVERSATION_STORE_MAX_ENTRIES",
        kinds.integer(0),
        None,
        "Maximum number of conversations; beyond it, the least recently used one is evicted. 0 turns conversations "
        "off.",
        default_text="none",
    )
    conversation_store_max_bytes: int | None = setting(
        "RESPONSES_CONVERSATION_STORE_MAX_BYTES",
        kinds.byte_count(0),
        None,
        "Maximum bytes of conversations and their items, with the same eviction; 0 evicts each at once.",
        default_text="none",
    )
    assembly_max_bytes: int = setting(
        "RESPONSES_ASSEMBLY_MAX_BYTES",
        kinds.byte_count(0),
        64 * MIB,
        "Maximum bytes of stored histories that a process reads at the same time; a request beyond is answered 503.",
    )
    isolation: str = setting(
        "RESPONSES_ISOLATION",
        kinds.choice("project", "key"),
        "project",
        "Who shares responses, conversations and cached prompts: all keys of a project, or only the key itself.",
    )
    conversation_store_ttl_seconds: int = setting(
        "RESPONSES_CONVERSATION_STORE_TTL_SECONDS",
        kinds.integer(0),
        0,
        "How long a conversation is kept after its last turn; 0 keeps it forever.",
    )
