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
        "How long a stored response is kept after it ended; 0 keeps it for ever.",
    )
    store_max_entries: int | None = setting(
        "RESPONSES_STORE_MAX_ENTRIES",
        kinds.integer(0),
        None,
        "Most responses that are stored; one more evicts the one that was used longest ago. 0 turns storing off.",
        default_text="none",
    )
    store_max_bytes: int | None = setting(
        "RESPONSES_STORE_MAX_BYTES",
        kinds.byte_count(0),
        None,
        "Most bytes of stored responses, evicted likewise; 0 evicts each at once. Running ones may take as much again; "
        "one more is answered 429.",
        default_text="none",
    )
    entry_max_bytes: int = setting(
        "RESPONSES_ENTRY_MAX_BYTES",
        kinds.byte_count(1),
        64 * MIB,
        "Largest stored response, its history included; what is larger is answered 413, or fails when it ends.",
    )
    project_max_entries: int = setting(
        "RESPONSES_PROJECT_MAX_ENTRIES",
        kinds.integer(0),
        0,
        "Most stored responses of a project, which evicts its own; 0 is no limit.",
    )
    project_max_bytes: int = setting(
        "RESPONSES_PROJECT_MAX_BYTES",
        kinds.byte_count(0),
        0,
        "Most bytes of a project's stored responses, which evicts its own; 0 is no limit.",
    )
    conversation_store_max_entries: int | None = setting(
        "RESPONSES_CONVERSATION_STORE_MAX_ENTRIES",
        kinds.integer(0),
        None,
        "Most conversations; one more evicts the one that was used longest ago. 0 turns conversations off.",
        default_text="none",
    )
    conversation_store_max_bytes: int | None = setting(
        "RESPONSES_CONVERSATION_STORE_MAX_BYTES",
        kinds.byte_count(0),
        None,
        "Most bytes of conversations and their items, evicted likewise; 0 evicts each at once.",
        default_text="none",
    )
    assembly_max_bytes: int = setting(
        "RESPONSES_ASSEMBLY_MAX_BYTES",
        kinds.byte_count(0),
        64 * MIB,
        "Most bytes of stored histories that a process reads at once; a request beyond is answered 503.",
    )
    isolation: str = setting(
        "RESPONSES_ISOLATION",
        kinds.choice("project", "key"),
        "project",
        "Who shares responses, conversations and cached prompts: the keys of a project, or nobody but the key itself.",
    )
    conversation_store_ttl_seconds: int = setting(
        "RESPONSES_CONVERSATION_STORE_TTL_SECONDS",
        kinds.integer(0),
        0,
        "How long a conversation is kept after its last turn; 0 keeps it for ever.",
    )
