// SPDX-License-Identifier: Apache-2.0

// Package apiserver starts a real etcd and kube-apiserver for tests ([Start]),
// with Plumbline's kinds ([WithKinds]), with all of the chart that works without a
// pod ([Render], [Install]), and with the built-in controllers where a test needs
// what they do ([StartControllers]). Users are impersonated ([As]), or have a
// kubeconfig of their own ([WriteKubeconfig], [Enrol]).
package apiserver
