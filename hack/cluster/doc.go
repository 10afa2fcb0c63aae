// SPDX-License-Identifier: Apache-2.0

// Command cluster runs a real Kubernetes on this machine, without Docker, and
// builds container images for it.
//
// # What it does
//
//	cluster preflight                     say what the machine lacks; install Debian packages when root
//	cluster build [--only control-plane|helm|envoy|metrics|all]
//	                                      compile or fetch everything into the cache, once
//	cluster assets                        print the folder for KUBEBUILDER_ASSETS
//	cluster bin                           print the folders of kubectl, helm and ctr, for the PATH
//	cluster which PROGRAM                 print the path of kubectl, helm, ctr, envoy, envoy-oldest, haproxy, nginx, traefik, moto, kube-apiserver-oldest, ...
//	cluster up [--name demo] [--nodes 1]  bring a cluster up; harmless when it is up
//	cluster down [--name demo]            take it away, with everything in it
//	cluster list                          list clusters and how they are
//	cluster kubeconfig [--name demo]      print the path of the administrator's kubeconfig
//	cluster exec [--name demo] -- CMD     run a command inside a cluster's namespaces
//	cluster load [--name demo] X.tar ...  load image archives into the node
//	cluster registry [--name demo]        serve a registry to a cluster that has --host-registry
//	cluster image build|redis|envoy|push|check-push
//	                                      make images, push them to a registry
//
// It is run from within the repository, which holds the modules that it compiles:
//
//	go build -C hack/cluster -o bin/cluster . && sudo hack/cluster/bin/cluster up
//
// "up" prints an export line for KUBECONFIG on standard output. Useful flags are
// --nodes 0 for a control plane only, --audit and --audit-policy for an audit log
// (log/audit.jsonl in the state folder), --apiserver-arg, --host-registry for a node
// that pulls images from a registry of this machine, and --owner for a cluster that
// ends with a process, such as a test.
//
// # How it works
//
// Everything is compiled from Go modules (components/*, each with its own go.mod,
// the only place where its version is written) into a cache folder,
// ${PLUMBLINE_CACHE:-${XDG_CACHE_HOME:-~/.cache}/plumbline}, keyed by version and
// by a digest of source, flags, target and compiler. Only runc, iptables and
// redis-server come from Debian: runc needs the C library libseccomp. Envoy, which
// no cluster needs to run, comes ready made in a Python wheel, by way of pip and
// whatever registry pip is configured with.
//
// A cluster is one process tree in mount, network, pid, UTS and IPC namespaces of
// its own, tied to the host by one network link and one route. The host reaches
// the API server, pods, ClusterIPs, and NodePorts at the node's address; the API
// server, which is inside, reaches webhooks by the ClusterIP of their Service.
// Several clusters run side by side and share nothing but the kernel. The end of
// a cluster is one kill; the kernel does the rest.
//
// Nothing is restarted: a daemon that dies stays dead, "list" says so, and the
// next "up" replaces the cluster. State is disposable.
//
// # Where to start reading
//
//   - internal/plan says what a cluster consists of, setting by setting, with reasons
//   - internal/lifecycle brings up, checks and takes down
//   - internal/sandbox has the namespaces, the first process and the cgroups
//   - internal/component and internal/builder compile and cache
//   - image builds and pushes images; internal/registry takes them, in memory
//   - internal/preflight looks at the machine
//   - internal/address divides the address space; internal/pki makes certificates;
//     internal/kubeapi asks the API server; internal/cli parses flags
//
// # Limits
//
//   - Linux and root only. Control groups version 1 are tested; version 2 takes
//     the same code, which differs in one folder, and has not been tried.
//   - Envoy is there for amd64 and arm64, and needs glibc 2.31 or newer.
//   - One node at most. Pods have no way out to the internet, and names outside
//     the cluster do not resolve.
//   - The bridge network does not enforce NetworkPolicy.
//   - The empty folders /var/lib/cni and /var/lib/kubelet stay on the host: they
//     are mount points, which another cluster may be using.
//
// # Tests
//
// "go test ./..." covers what is pure. "go test -tags cluster ." needs root and
// brings real clusters up: two side by side with pods, a broken one that is
// repaired, interrupted ones, and a check that nothing is left behind.
package main
