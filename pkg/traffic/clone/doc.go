// SPDX-License-Identifier: Apache-2.0

// Package clone computes the bodies of the Deployments that a release has the executor write: the
// clone of the stable variation's Deployment, and that Deployment with the change of the clone.
//
//	release, variation ─────────┐
//	Deployment of the stable ───┼──BodyOf──▶ body of the clone
//	variation, Service ─────────┘──Change──▶ the same Deployment with other images and variables
//
// Both change images and variables alone, and both are idempotent: a Deployment that is changed
// twice is as one that was changed once. Objects are unstructured, so that a field which this
// version does not know is kept.
//
// A release from which no body can be computed gives a [RefusedError], which names the field and the
// remedy.
package clone
