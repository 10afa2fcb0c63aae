// SPDX-License-Identifier: Apache-2.0

// Package world has what a simulated remediation is about, and who takes part in
// it: a namespace with guarded Deployments or Services that drifted, a policy that
// puts them back, rolls them back, scales, restarts or makes them again, perhaps
// at some hours alone; plans, the ledgers; two executors that both believe to be
// the only one, and whose clocks may be wrong; a controller that makes Deployments
// ready; people who pause, cancel and halt; writers who change the targets, put
// them back, delete them and make them anew; a Redis that answers anything.
//
// The executors are the real ones, made by the constructor that the assessor uses
// (internal/executor), over the simulated API server and scheduler beside
// this package. They are woken as the real controller of plans says
// (internal/controller/plan), also by changes of the targets that they wait for. They are
// told by [informers]: each kind comes by a stream of its own that is behind, stands still
// at times, and never goes back for any one object. A plan that only waits reads from there,
// too. Everything that decides on a write is read live.
//
//	report := world.Run(seed, world.Options{}) // within a bubble of testing/synctest
//
// [judge] holds what was written against the promises: I1 to I36 about everything
// that was ever stored, L1 to L6 about how it ends, and how soon. A [Mutant] is an
// executor with one of its protections taken out; the promises must catch each.
//
// An executor may stand still for minutes between its decision to make an object and its
// request ([dozing]), when no timer of the request runs yet. Draws of its own decide that,
// so that the seeds of other worlds stay as they are.
//
// What an executor reads of others, it reads between the grant of a step and its intent. So
// the judge asks whether there was a moment in between at which the policy, the halts, the
// health of the others, the guard and the Baseline let the step through (I14, I15, I17, I24, I25): no race with a
// person can break that, and an executor that reads too early does.
//
// A store may forget a record. The judge then asks for all that is said of targets, ledgers and
// brakes, takes what the store has lost for told, and demands that verifying misses it (I26).
// Where another record has the place of a lost one, the chain stops, and a plan has to say so.
// No executor lists a store, so a list that lacks a record is no case of these worlds.
//
// In worlds about releases each target has an ABRelease, whose run may be under way for a while
// (I31). An executor that takes an intent over has to look again before it writes. In worlds about
// quarantines the plans write Baselines ([World.addMesh]): a Service has an endpoint of each target
// and one of a workload that no guard selects, and endpoints become unready. The assessor judges
// the targets and ends quarantines by the rules of the real one. The judge counts endpoints by
// itself (I34), and looks at the end for quarantines that should have ended (I33).
//
// In one world in 25 a standby serves while a target is repaired ([World.serveStandbys]): the Deployments become
// ready, the discovery server decides by the rules of the real one, all proxies acknowledge that after a while, and
// what belongs to an object that is gone is removed. People remove ABReleases of standbys, and standbys lose their
// pods (I36). A plan of these worlds is not the planner's.
//
// Two cases that no executor can prevent are known to the judge, and to no wider extent: the second copy of a
// creation after a deletion, and the record of a decision that another executor has overtaken (judge_known.go).
//
// A rare case is an [Aim]: it changes a scenario, and names what is counted when it is met.
//
// I16 goes by the API server's time and lets five seconds pass. A write that the
// network held for longer than its sender waited counts by when it was sent: nobody
// can call it back, and stopping it would itself be a write outside of the hours.
//
// In a share of the worlds an executor has two workers, or four as the real one has, of which
// each carries out another plan at the same time, as the queue of controller-runtime guarantees. The
// workers share the lock of the records, for which the bubble cannot wait. So while one worker
// writes a record or keeps its head, the other worker of that process goes on no further.
//
// In some worlds no plan is there at first, and a planner makes them: the real reconciler of
// policies ([leader]). What the real one reads from its cache comes from informers, and all else
// is a message. Each of its lives is that of one of two processes, whose clocks are wrong, and
// begins with an empty memory. A life begins only after the one before has ended, as by a lease.
// So a request that the network held may make a plan beside that of the next life; I27, I28 and
// I29 let such plans pass, because the claims (I12) hold for them, too.
// The [assessor] of these worlds judges targets by the rules of the real one, and tells of mass
// drifts. Once everything is calm, the world ends when no plan is live, and the planner and the
// assessor have nothing to do, now or later. The judge then finds by itself why a drift is left (L6).
//
// Clocks are wrong by the same from the beginning to the end, but in worlds whose clocks jump: there
// the clock of each executor is set once. The time of the API server, by which the judge goes, never
// jumps.
package world
