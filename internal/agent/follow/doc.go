// SPDX-License-Identifier: Apache-2.0

// Package follow decides what the agent of a program asks the discovery server for, what the agent
// brings the program to, and what the agent acknowledges.
//
//	responses ──[State.Receive]──▶ waiting for a proof ──[State.Next]──▶ Attempt: ports
//	                                      ▲                                  │ the program is brought there
//	          answers, subscriptions ◀────┴──────────[State.Conclude]◀── Result
//
// A response is acknowledged when each of its resources is in force, and refused with the words of the
// program or of the inverse. Responses that come while an attempt is under way are part of the next
// one together. After a refusal each response is tried alone, so that no response is refused because
// of another one.
//
// A proof that does not come in time is a refusal as well, which names the processes that are late:
// the server sends a later version only after an answer. The program keeps its goal, and the agent
// reports the version on a new stream when the proof is there ([State.IsOutdated]).
//
// The package reads no clock, and does nothing.
package follow
