// SPDX-License-Identifier: Apache-2.0

// Package pki makes the certificates and kubeconfig files of one cluster. They
// live as long as the cluster's state folder and are never reused.
package pki
