// SPDX-License-Identifier: Apache-2.0

// Package readiness says whether an object does what its spec says.
//
// [Of] reads the JSON of a whole object, status included, and answers Ready,
// NotReady or Unknown, with a sentence for people. It is asked at every event of
// a guarded object (so that a rollback knows which state worked) and by the
// executor after every write.
//
// The rules are those of kstatus (sigs.k8s.io/cli-utils, pkg/kstatus): what the
// controller has seen (observedGeneration), the counters of the built-in
// workloads, and the conditions Ready, Reconciling and Stalled of everything else.
// kstatus asks whether a rollout goes on, and takes what says nothing for
// current. Here the question is whether it works, so silence is never Ready:
//
//   - a workload whose controller has not looked at it is NotReady;
//   - a custom object that says nothing about itself is Unknown, unless it is known
//     ([Knowledge]) that its kind has no place for such words: then it is ready as stored;
//   - a pod that failed, and a Job that did, are NotReady.
//
// All differences are listed in the test, object by object.
//
// Nothing is decoded: package canon parses the object once, and the few values
// that decide are looked up in it. Who has parsed it already calls [OfDocument].
package readiness
