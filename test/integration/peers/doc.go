// SPDX-License-Identifier: Apache-2.0

// Package peers holds the benchmark of the latency that Plumbline adds to one write,
// beside the CEL policy of Kyverno, in the same kube-apiserver and the same run, see
// [BenchmarkPeers]; and of the parts of that latency, see [BenchmarkParts].
//
// The package has no tests. `make bench-admission-peers` builds Kyverno and sets KYVERNO
// to the folder of the build (hack/kyverno.sh).
package peers
