"""The variant of the native core for this processor, chosen at import.

``DRHMM_ISA`` chooses another one: baseline, v3 (AVX2 and FMA) or v4 (AVX-512) on x86-64, baseline elsewhere. Wheels
have all variants; a build from source has the best one of its machine. A variant that is missing, unsupported by the
processor or broken raises an error; there is no silent fallback.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys

from ._processor import best_isa

ORDER = ("baseline", "v3", "v4")


def choose(requested: str | None, supported: str, built: tuple[str, ...]) -> str:
    """Choose the variant: the requested one, or the best built and supported one."""
    possible = [isa for isa in ORDER if isa in built and ORDER.index(isa) <= ORDER.index(supported)]
    if requested is None:
        if not possible:
            raise ImportError(
                f"drhmm was built for another processor: it has {', '.join(built) or 'no native core'}, and this "
                f"processor is {supported}; build it here, or everywhere with -Ccmake.define.DRHMM_VARIANTS=all"
            )
        return possible[-1]
    if requested not in ORDER:
        raise ImportError(f"DRHMM_ISA={requested!r}: must be one of {', '.join(ORDER)}")
    if requested not in built:
        raise ImportError(f"DRHMM_ISA={requested!r}: this build of drhmm has {', '.join(built)} only")
    if requested not in possible:
        raise ImportError(f"DRHMM_ISA={requested!r}: this processor can run {', '.join(possible)} only")
    return requested


def built_variants() -> tuple[str, ...]:
    """List the installed variants."""
    return tuple(isa for isa in ORDER if importlib.util.find_spec(f"drhmm._core_{isa}") is not None)


_ISA = choose(os.environ.get("DRHMM_ISA") or None, best_isa(), built_variants())
sys.modules[__name__] = importlib.import_module(f"drhmm._core_{_ISA}")
