// SPDX-License-Identifier: Apache-2.0

// Package sim is the simulator of remediations: the real executor, the rules by which
// the real controller wakes plans, and in some worlds the real planner, over an API
// server in memory, with lost, late and doubled messages, watches that are behind,
// stale reads, crashes anywhere, two executors at once whose clocks are wrong, people
// and bots who interfere, hours at which nothing may be written, and a Redis that answers
// anything. A seed decides everything, so every run can be had again:
//
//	go test ./test/sim -run TestPromisesHoldWhateverHappens -sim.seed 17 -v
//	go test ./test/sim -sim.seeds 100000
//	go test ./test/sim -run TestPromises -sim.hours      // every policy has hours
//	go test ./test/sim -run TestPromises -sim.refused    // what was refused arrives once more
//	go test ./test/sim -run TestPromises -sim.creations  // every target is made again
//	go test ./test/sim -run TestPromises -sim.planner    // no plan is there at first
//
// PLUMBLINE_LONG=1 runs seeds that were not run before, and says with which one they begin.
//
// # Rare cases
//
// Each world has two of the rare cases of [world.Aims] beside all else: policies that are
// edited, kinds that cannot be read, accepts, webhooks, ill neighbors, fights, mass drifts,
// releases under way, quarantines, standbys, stores that break or forget, ledgers that a person edits, clocks that are set, two or four
// workers in a process, long waits, and more. One world in 25 has a planner, which makes all plans.
// TestRareCasesAreMetOften has short worlds of one case each.
//
// # Mutants
//
// A simulation that finds nothing shows something only if it would find it. Each
// mutant is the executor without one protection, and has a promise that has to
// break first, in the same worlds in which the real one keeps it. The quick run begins
// with the seeds of testdata/mutants.golden, and a long run searches for them:
//
//	writes carry no uid                        I10  makes a deleted object anew
//	nothing is fenced before a plan ends       I5   writes after the end
//	ledgers are written over whatever is there I4   passes a limit
//	cached reads, no resourceVersion           I3   overwrites what it has not seen
//	an empty copy in Redis grants              I11  writes what no ledger granted
//	cached reads                               I5   takes an old version for a fence
//	no resourceVersion                         I3
//	neither uid nor resourceVersion            I5
//	creations are admitted at any time         I5   makes an object after the end
//	the time of the own clock                  I16  writes outside of the hours
//	heads of records are not kept              I13  names records that could be cut off
//	the end of a plan is not recorded          I23
//	a chain goes as far as the store has it    I26  hides what the store forgot
//	the policy is read once                    I14  begins steps of a policy that has changed
//	a halt of a ledger is not seen             I14
//	the health of others is not asked          I17  begins steps while too many others are ill
//	Baselines are read once                    I15  puts back what a person has accepted
//	fights are not seen                        I24  begins a step over a target that writers fight over
//	mass drifts are not seen                   I25  begins a step in a mass drift
//	releases are not seen                      I31  writes while a run has the target
//	the mesh is not asked                      I34  takes the last ready endpoint
//	requests are taken for moved               I36  repairs a target whose pods answer requests
//	no dry run is sent                         I19  writes what a webhook changes
//	all batches are one                        I18  begins a batch before the one before has ended
//	no place is given back                     I21  keeps places while a plan waits
//	no target is let go of                     I21  keeps targets of plans that have ended
//	a failure counts as a success              I20
//	the breaker counts nothing                 I20
//	calls of the store have no deadline        L5   obeys no brake while the store hangs
//	plans under way are read from a cache      I27  makes a second plan for a target
//	plans are made at any rate                 I28
//	plans without success are forgotten        I29  backs off from nothing
//	a planner reads Baselines once             I30  plans what a person has accepted
//	what changes by time alone is not looked at L6  leaves a drift alone for good
//	every assessment is taken for effective     I35 closes a breaker after a probe that did not help
//
// The API server of these worlds has the chart's policy on creations of the executor
// (plumbline-executor-creations). For the mutants that drop the uid the policy had to be
// taken away as well: an update that makes an object carries no time, and is refused.
//
// Of the first: a PUT makes what is not there only for some kinds, such as
// Services, and a resourceVersion alone does not keep it from that. Deployments
// are covered by the API server itself, so these worlds are about Services.
//
// Cached reads alone never overwrite what the intent does not name. What is sent is
// the very object that was read, with its own resourceVersion: if that is behind,
// the dry run and the write are refused, and if it is not, what is overwritten is
// what was read. So I3 needs both protections gone. What cached reads alone break is
// the fence: an executor that takes over and sees a version from before the intent
// believes that somebody has moved it on since, and fences nothing.
//
// Reading guide: apiserver is the API server, conformance holds it against a real
// one, schedule decides who goes on and what becomes of each message, world has
// the objects, the people and the promises.
package sim
