// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"path/filepath"
	"regexp"
)

// Layout names the files of one cluster below its state folder.
type Layout struct{ Root string }

// Record describes the running cluster; it is written when bring-up begins.
func (l Layout) Record() string { return filepath.Join(l.Root, "cluster.json") }

// Alive is locked by the cluster's first process as long as it lives.
func (l Layout) Alive() string { return filepath.Join(l.Root, "alive") }

// Ready exists once bring-up has succeeded.
func (l Layout) Ready() string { return filepath.Join(l.Root, "ready") }

// Exits holds one file for each daemon that ended, with its exit status.
func (l Layout) Exits() string { return filepath.Join(l.Root, "exits") }

// Log is the file that the named daemon writes to.
func (l Layout) Log(name string) string { return filepath.Join(l.Root, "log", name+".log") }

// AuditLog is the API server's audit log, if it was asked for.
func (l Layout) AuditLog() string { return filepath.Join(l.Root, "log", "audit.jsonl") }

// Kubeconfig is the administrator's kubeconfig.
func (l Layout) Kubeconfig() string { return l.Client("admin") }

// Client is the kubeconfig of the named component.
func (l Layout) Client(name string) string {
	return filepath.Join(l.Root, "kubeconfig", name)
}

// Certificate and Key are the files of the named key pair.
func (l Layout) Certificate(name string) string { return filepath.Join(l.Root, "pki", name+".crt") }

// Key is the private key that belongs to [Layout.Certificate].
func (l Layout) Key(name string) string { return filepath.Join(l.Root, "pki", name+".key") }

// Config is a configuration file.
func (l Layout) Config(name string) string { return filepath.Join(l.Root, "config", name) }

// ContainerdSocket is where containerd listens; it is reachable from the host,
// so that images can be loaded without entering the cluster.
func (l Layout) ContainerdSocket() string { return l.data("containerd.sock") }

func (l Layout) data(name string) string { return filepath.Join(l.Root, "data", name) }

// Folders lists what must exist before the first process starts.
func (l Layout) Folders() []string {
	var folders []string
	for _, name := range []string{"log", "pki", "kubeconfig", "config", "exits", "data", "data/etcd", "data/kubelet", "data/pod-logs", "config/cni"} {
		folders = append(folders, filepath.Join(l.Root, name))
	}
	return folders
}

// maxName keeps the longest path of a Unix socket below the state folder, and
// the node's host name, within the kernel's bounds (108 and 64 bytes).
const maxName = 30

var namePattern = regexp.MustCompile(`^[a-z]([-a-z0-9]*[a-z0-9])?$`)

// CheckName reports whether a cluster may have that name: a DNS label that
// begins with a letter, at most 30 characters.
func CheckName(name string) error {
	if len(name) > maxName || !namePattern.MatchString(name) {
		return fmt.Errorf("cluster name %q: want at most %d lower-case letters, digits and dashes, beginning with a letter", name, maxName)
	}
	return nil
}

// maxSocketPath is sizeof(sockaddr_un.sun_path) less the terminating zero.
const maxSocketPath = 107

// CheckRoot reports whether a state folder can be used: short enough for the
// sockets in it, and not in a place that the cluster covers with its own tmpfs.
func CheckRoot(root string) error {
	if longest := len((Layout{Root: root}).data("kubelet/pod-resources/kubelet.sock")); longest > maxSocketPath {
		return fmt.Errorf("state folder %s is %d bytes too long for the Unix sockets in it; choose a shorter --state", root, longest-maxSocketPath)
	}
	for _, covered := range PrivateFolders() {
		if relative, err := filepath.Rel(covered, root); err == nil && filepath.IsLocal(relative) {
			return fmt.Errorf("state folder %s is inside %s, which every cluster covers with its own; choose another --state", root, covered)
		}
	}
	return nil
}

// PrivateFolders lists the folders of the host that a cluster must not share,
// each of which gets a tmpfs of the cluster's own: runtime state and network
// namespaces, pod logs, the CNI cache, and the kubelet's device plugin socket.
func PrivateFolders() []string {
	return []string{"/run", "/var/log", "/var/lib/cni", "/var/lib/kubelet"}
}
