// SPDX-License-Identifier: Apache-2.0

// Package admission gives pods their proxy when they are created: it is the adapter
// between the API server's reviews and the decisions of package inject.
//
// Start with [Injector.Review]: it reads the pod, asks what its namespace says, and
// answers with the patch, with nothing, or with a warning. [ParseConfig] reads what
// the installation says, [Namespaces] what a namespace does.
//
// A pod that asked for a proxy must not run without one because of us: what cannot
// be decided is denied, with a request to try again (admission.NewFailClosed). A pod that
// cannot have a proxy is no such case; it is created as it is, and a warning says why.
//
// Adapter. It uses the Kubernetes API, logs and metrics.
package admission
