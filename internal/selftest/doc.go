// SPDX-License-Identifier: Apache-2.0

// Package selftest drifts an object of its own every few minutes and checks that
// it is found: the proof that detection works from end to end, when everything
// else is quiet.
//
// The object is a Deployment with 0 replicas in a namespace of its own, guarded
// by a SpecGuard of the chart. That namespace is not Plumbline's: admission
// excludes that one, so a self-test in it would prove the watch alone, and neither
// the writer stamp nor the webhook. One round is ([Runner.Round]):
//
//  1. write another number into one field, as a user whom the guard does not trust
//  2. check the answer for the writer's and the hash stamp
//  3. wait until the Baseline names the path, and the self-test's own user as the actor
//  4. put the number back, and wait until the object is in sync
//
// The self-test is the only writer. Its moves to and fro must not look like a
// fight, which is three reversals at one place within ten minutes: so each round
// takes the next of three fields ([knobs]), and the clock says which ([SlotAt]),
// so that a restart cannot repeat one too early.
package selftest
