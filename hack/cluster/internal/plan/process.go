// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"strconv"
)

const (
	apiPort  = "6443"
	etcdURL  = "http://127.0.0.1:2379" // the cluster's own loopback: not reachable from the host or from pods
	etcdPeer = "http://127.0.0.1:2380"
)

// Names of the daemons, which are the names of their log files.
const (
	Etcd              = "etcd"
	APIServer         = "kube-apiserver"
	ControllerManager = "kube-controller-manager"
	Scheduler         = "kube-scheduler"
	Containerd        = "containerd"
	Kubelet           = "kubelet"
	Proxy             = "kube-proxy"
)

// Process is one daemon.
type Process struct {
	Name string   `json:"name"`
	Path string   `json:"path"`
	Args []string `json:"args"` // without the program's name
	Env  []string `json:"env"`
	Log  string   `json:"log"`
}

// First lists the daemons that need nobody else. The API server retries until
// etcd answers, so the two start together.
func (c Cluster) First() []Process {
	first := []Process{c.process(Etcd, c.etcdArgs()), c.process(APIServer, c.apiServerArgs())}
	if c.Options.Nodes > 0 {
		first = append(first, c.process(Containerd, []string{"--config", c.Layout().Config("containerd.toml")}))
	}
	return first
}

// Second lists the daemons that need the API server and, the kubelet, containerd.
// Without a node nothing can be scheduled, so there is no scheduler.
func (c Cluster) Second() []Process {
	second := []Process{c.process(ControllerManager, c.controllerManagerArgs())}
	if c.Options.Nodes > 0 {
		second = append(second,
			c.process(Kubelet, c.kubeletArgs()),
			c.process(Proxy, c.proxyArgs()),
			c.process(Scheduler, []string{"--kubeconfig=" + c.Layout().Client(Scheduler), "--leader-elect=false"}),
		)
	}
	return second
}

func (c Cluster) process(name string, args []string) Process {
	return Process{
		Name: name, Path: c.Program(name), Args: args, Log: c.Layout().Log(name),
		Env: []string{"PATH=" + c.SearchPath(), collectLess, memoryLimit},
	}
}

// A daemon collects garbage less often than Go's default, which saves a seventh of the
// processor time of the API server, and more often again near the limit.
const (
	collectLess = "GOGC=400"
	memoryLimit = "GOMEMLIMIT=1GiB"
)

func (c Cluster) etcdArgs() []string {
	return []string{
		"--data-dir=" + c.Layout().data("etcd"),
		"--listen-client-urls=" + etcdURL,
		"--advertise-client-urls=" + etcdURL,
		"--listen-peer-urls=" + etcdPeer,
		"--unsafe-no-fsync", // the state is disposable; bring-up is not bound by the disk
		"--log-level=warn",
	}
}

func (c Cluster) apiServerArgs() []string {
	l := c.Layout()
	args := []string{
		"--etcd-servers=" + etcdURL,
		"--secure-port=" + apiPort,
		"--advertise-address=" + c.Network.Node().Addr().String(),
		"--service-cluster-ip-range=" + c.Network.Services().String(),
		"--tls-cert-file=" + l.Certificate(APIServer),
		"--tls-private-key-file=" + l.Key(APIServer),
		"--client-ca-file=" + l.Certificate(authorityFile),
		"--service-account-key-file=" + l.Certificate(signerFile),
		"--service-account-signing-key-file=" + l.Key(signerFile),
		"--service-account-issuer=https://kubernetes.default.svc",
		"--authorization-mode=Node,RBAC",
		"--enable-admission-plugins=NodeRestriction",
		"--kubelet-client-certificate=" + l.Certificate(adminFile),
		"--kubelet-client-key=" + l.Key(adminFile),
		"--kubelet-preferred-address-types=InternalIP",
		"--allow-privileged=true",
		"--profiling=false",
	}
	args = append(args, c.aggregationArgs()...)
	if c.Options.Audit {
		args = append(args, "--audit-log-path="+l.AuditLog(), "--audit-policy-file="+l.Config("audit-policy.yaml"))
	}
	return append(args, c.Options.APIServerArgs...)
}

// aggregationArgs let an aggregated API, such as a metrics server, trust the API
// server. Its authority must be another than the clients', or every client
// certificate could name any user in a header.
func (c Cluster) aggregationArgs() []string {
	l := c.Layout()
	return []string{
		"--requestheader-client-ca-file=" + l.Certificate(frontProxyAuthorityFile),
		"--requestheader-allowed-names=" + frontProxyName,
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file=" + l.Certificate(frontProxyFile),
		"--proxy-client-key-file=" + l.Key(frontProxyFile),
	}
}

func (c Cluster) controllerManagerArgs() []string {
	l := c.Layout()
	return []string{
		"--kubeconfig=" + l.Client(ControllerManager),
		"--service-account-private-key-file=" + l.Key(signerFile),
		"--root-ca-file=" + l.Certificate(authorityFile),
		"--use-service-account-credentials",
		"--allocate-node-cidrs",
		"--cluster-cidr=" + c.Network.Pods().String(),
		"--cluster-signing-cert-file=" + l.Certificate(authorityFile),
		"--cluster-signing-key-file=" + l.Key(authorityFile),
		"--leader-elect=false",
		// At the default of 20 requests/s the start of some forty controllers is
		// throttled: the default ServiceAccount came after 10 s instead of 4 s.
		"--kube-api-qps=500",
		"--kube-api-burst=1000",
	}
}

func (c Cluster) kubeletArgs() []string {
	l := c.Layout()
	return []string{
		"--config=" + l.Config("kubelet.yaml"),
		"--kubeconfig=" + l.Client(Kubelet),
		"--hostname-override=" + c.NodeName(),
		// Without it the kubelet looks its own name up in DNS.
		"--node-ip=" + c.Network.Node().Addr().String(),
		"--root-dir=" + l.data("kubelet"),
	}
}

func (c Cluster) proxyArgs() []string {
	return []string{
		"--kubeconfig=" + c.Layout().Client(Proxy),
		"--hostname-override=" + c.NodeName(),
		"--cluster-cidr=" + c.Network.Pods().String(),
		"--proxy-mode=iptables",
		// At the default of 1 s a webhook that reports ready is still refused for
		// as long; the API server reaches webhooks by these very rules.
		"--iptables-min-sync-period=1ms",
		// The size of the connection table belongs to the host: leave it.
		"--conntrack-max-per-core=0",
	}
}

// ImportArgs is the ctr command line that loads an image archive.
func (c Cluster) ImportArgs(archive string) []string {
	return []string{"--address", c.Layout().ContainerdSocket(), "--namespace", "k8s.io", "images", "import", "--local", archive}
}

// EnterArgs is the nsenter command line that runs a command inside the cluster,
// whose first process has the given number on the host.
func EnterArgs(pid int, command []string) []string {
	args := []string{"--target", strconv.Itoa(pid), "--mount", "--net", "--pid", "--uts", "--ipc", "--"}
	return append(args, command...)
}
