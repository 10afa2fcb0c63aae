// SPDX-License-Identifier: Apache-2.0

// Package edgeagent runs the agent beside a real program in tests, with a real discovery server of two replicas.
// Its suite has the promises of an agent that hold beside each program.
//
//	[Plane]: two replicas ◀── [Agent]: the process of cmd/agent ──▶ the program of a [Program]
package edgeagent
