"""A probe never raises for what it finds: what cannot be reached or read is unknown, in the store's own words."""

from __future__ import annotations

from functools import wraps

from wizard.catalogue.live.binding import ProbeCode
from wizard.catalogue.world import Seen, World, unknown
from wizard.errors import RunbookError


def careful(look: ProbeCode) -> ProbeCode:
    @wraps(look)
    def guarded(world: World) -> Seen:
        try:
            return look(world)
        except RunbookError as error:
            return unknown(str(error))
        except OSError as error:
            where = f"{error.filename}: " if error.filename else ""
            return unknown(f"{where}{error.strerror or error}")
        except Exception as error:  # noqa: BLE001  each store and library has its own
            return unknown(f"{type(error).__name__}: {' '.join(str(error).split())[:300]}")

    return guarded
