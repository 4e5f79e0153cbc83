"""Kernels: the documents that a question needs together.

Two ways to find one: :func:`find_kernel` asks a judge and searches for what is missing, :func:`agent_kernel`
lets a model solve the case and sees what it used. A third, :mod:`dartboard.mining.import_mining`, reads the
imports of a solution.
"""

from dartboard.datasets.mined import Kernel, Status
from dartboard.mining.kernels.agent_discovery import AgentRun, agent_kernel
from dartboard.mining.kernels.expansion import FoundKernel, find_kernel

__all__ = ["AgentRun", "FoundKernel", "Kernel", "Status", "agent_kernel", "find_kernel"]
