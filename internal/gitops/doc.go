// SPDX-License-Identifier: Apache-2.0

// Package gitops judges whether a GitOps tool leaves alone the fields that Plumbline
// fills in at run time: bundles, certificates, leases. The doctor reports that judgment.
// [Marked] tells from labels whether such a tool applies an object; plans ask a person
// before they change such an object. [FindOwner] names the object of the tool, and [Route] is
// a route of Gateway API, whose weights a router writes.
//
// [Objects] are the objects of the chart that have such fields. Each tool says
// in its own way what it ignores: argocd.go and flux.go decode that from what
// the API server stores, and each rule is then carried out on a sample of the
// object, with the same meaning that the tool gives it: a JSON pointer is
// removed, a jq path deleted (jq.go), a name matched as a glob or as an anchored
// regular expression. What is left of the fields afterwards is what the tool
// would take for drift, so a rule that covers more than is needed, or a part of
// it, is judged rightly without being understood.
//
// Everything here is a function from values to values. The meanings are those of
// Argo CD 3.5 and of Flux's helm-controller 1.6 and kustomize-controller 1.9.
package gitops
