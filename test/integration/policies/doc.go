// SPDX-License-Identifier: Apache-2.0

// Package policies tests what the chart installs into the API server itself: the
// writer stamp and the policies on our own kinds, with writes of different users,
// and the life of a release (install, upgrade, uninstall). It renders the real
// chart with Helm and needs a real kube-apiserver (KUBEBUILDER_ASSETS).
//
// No controllers run here, so cluster roles are not aggregated: the tests bind
// the rules that edit is aggregated from.
package policies
