// SPDX-License-Identifier: Apache-2.0

// Package schedule runs processes against a simulated API server, one at a time
// and in an order that a seed decides, so that every run can be had again.
//
// A process is an [Actor]. Whatever it asks of anybody else is a message: an HTTP
// request ([Life.Transport]) or a [Call]. At each message the scheduler decides
// who goes on, and what becomes of the message: it arrives; it is lost; it
// arrives, and its answer is lost; it arrives later, when nobody waits for it any
// more; it arrives twice; or the process dies over it, and begins anew with an
// empty memory.
//
// A process may have several workers ([Life.Fork]) that share its memory. One of them goes on at
// a time, and all of them die at once.
//
// A run is in a bubble of testing/synctest, so the clock is a virtual one: it
// moves when every process waits. Code under test may use time, timers and
// contexts as it does elsewhere.
//
//	s := schedule.New(seed)
//	s.Spawn("executor-a", func(l *schedule.Life) { ... l.Transport(server, user) ... })
//	s.Disturb(schedule.Chances{Late: 50})
//	err := s.Run(300, nil)        // 300 messages
//	s.Disturb(schedule.Chances{})
//	err = s.Run(5000, plan.ended) // until it has ended
//	s.Stop()
package schedule
