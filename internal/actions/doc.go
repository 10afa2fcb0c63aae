// SPDX-License-Identifier: Apache-2.0

// Package actions holds what a person may ask of Plumbline: to accept what runs, to check
// an object or put it back, to execute, pause, resume or cancel a plan, to set the mode of
// a policy, to halt remediation. The plugin parses and prints; every other way to ask shares this package.
//
// An action has up to three parts:
//
//   - a decision, which is a pure function from objects to values: whether the request
//     makes sense ([PlanAccept], [RefusePlanVerb], [SelectGroups]);
//   - a request, which writes under the precondition that the object is the one that was
//     shown ([RequestAccept], [Submit]);
//   - a judgment of what the object says since: whether the request was taken
//     ([JudgeAccept], [JudgePlanVerb]), and the wait for it ([Await]).
//
// What would come of a request is told before it is sent: package preview has the plans of a
// policy and the dry runs of their writes, and package explanation the gates that each drift
// has to pass.
//
// Results are values and errors are types, so that each caller has its own words for them.
// Authorization is the API server's: a request is sent as the person who asks.
package actions
