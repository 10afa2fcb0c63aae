// SPDX-License-Identifier: Apache-2.0

// Package routeowner finds the GitOps tool that applies the route of a release, and would undo its weights. The doctor
// and the plugin ask the same. Package gitops judges the rules that are read here.
//
// Adapter.
package routeowner
