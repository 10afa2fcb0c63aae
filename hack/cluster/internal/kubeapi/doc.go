// SPDX-License-Identifier: Apache-2.0

// Package kubeapi asks a Kubernetes API server the few questions that bring-up
// has. It is a few lines on net/http, so that this program does not need the
// Kubernetes client libraries and compiles in seconds.
package kubeapi
