// SPDX-License-Identifier: Apache-2.0

// Command demo brings up a cluster, installs Plumbline with Helm, deploys a
// small shop as a CI service account, and shows in plain words and with real
// output what Plumbline sees: who changed what, what was expected, what was
// authorized, and what is drift. It leaves the cluster running.
//
// main.go is wiring, prepare.go builds and installs, shop.go holds the shop's
// manifests, scenes.go the story, remediation.go and fight.go its second half,
// narrator.go how it is told.
package main
