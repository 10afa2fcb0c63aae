// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"crypto/rand"
	"os"
	"slices"
)

// maxIdentity keeps a field manager made of it within the API server's 128 bytes.
const maxIdentity = 100

// ServiceNames are the DNS names under which a Service is called, and more
// names or IP addresses that were asked for. The API server uses the first.
func ServiceNames(service, namespace string, more []string) []string {
	base := service + "." + namespace
	names := append([]string{base + ".svc", base + ".svc.cluster.local", base}, more...)
	slices.Sort(names[3:])
	return slices.Compact(names)
}

// Identity is a replica's name in the lease: that of its pod, or one that no
// other process has.
func Identity(podName string) string {
	if podName != "" {
		return podName[:min(len(podName), maxIdentity)]
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return host[:min(len(host), maxIdentity-33)] + "_" + rand.Text()
}
