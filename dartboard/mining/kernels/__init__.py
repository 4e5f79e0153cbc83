"""Kernels: the documents that a question needs together.

Three ways to find one: :func:`find_kernel` asks a judge and searches for what is missing,
:func:`imports_kernel` reads the imports of a solution, :func:`agent_kernel` lets a model solve the case and
sees what it used; :func:`compare_kernels` says how far they agree.
"""

from dartboard.mining.dataset import Kernel, Status
from dartboard.mining.import_mining import ImportKernel, imports_kernel
from dartboard.mining.kernels.agent_discovery import AgentKernel, agent_kernel
from dartboard.mining.kernels.comparison import KernelComparison, compare_kernels, jaccard
from dartboard.mining.kernels.expansion import ExpansionKernel, find_kernel
from dartboard.mining.kernels.voting import Step

__all__ = [
    "AgentKernel",
    "ExpansionKernel",
    "ImportKernel",
    "Kernel",
    "KernelComparison",
    "Status",
    "Step",
    "agent_kernel",
    "compare_kernels",
    "find_kernel",
    "imports_kernel",
    "jaccard",
]
