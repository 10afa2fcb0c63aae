// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/plumbline-dev/plumbline/hack/cluster/internal/plan"
)

// insideLink is the name of the link's end inside the cluster.
const insideLink = "eth0"

// setUpMounts runs in the new mount namespace. First nothing may propagate to the
// host; in the end everything is shared among the cluster's own namespaces, as
// the kubelet demands of mounts that pods are to see.
func setUpMounts(s plan.Sandbox) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("making mounts private: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mounting /proc: %w", err)
	}
	// /etc/resolv.conf is often a link into /run, which is about to be covered.
	targets := make([]string, len(s.Binds))
	for i, bind := range s.Binds {
		targets[i] = resolveLinks(bind.Target)
	}
	for _, folder := range s.Private {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return fmt.Errorf("creating a mount point: %w", err)
		}
		if err := unix.Mount("tmpfs", folder, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=0755"); err != nil {
			return fmt.Errorf("covering %s: %w", folder, err)
		}
	}
	for i, bind := range s.Binds {
		if err := cover(bind.Source, targets[i]); err != nil {
			return err
		}
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SHARED, ""); err != nil {
		return fmt.Errorf("making mounts shared inside: %w", err)
	}
	return nil
}

func resolveLinks(path string) string {
	if resolved, err := filepath.EvalSymlinks(path); err == nil {
		return resolved
	}
	return path
}

// cover shows source at target. The target is created when it is in a covered
// folder; a target of the host that does not exist, such as a kernel setting that
// this kernel lacks, needs no cover.
func cover(source, target string) error {
	if _, err := os.Stat(target); errors.Is(err, fs.ErrNotExist) {
		if !inPrivateFolder(target) {
			return nil
		}
		if err := createFile(target); err != nil {
			return fmt.Errorf("creating %s: %w", target, err)
		}
	}
	if err := unix.Mount(source, target, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("covering %s: %w", target, err)
	}
	return nil
}

func inPrivateFolder(path string) bool {
	for _, folder := range plan.PrivateFolders() {
		if relative, err := filepath.Rel(folder, path); err == nil && filepath.IsLocal(relative) {
			return true
		}
	}
	return false
}

func createFile(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, nil, 0o644)
}

// setUpNetwork configures the inside of the link, which the launcher has put into
// this network namespace.
func setUpNetwork(s plan.Sandbox) error {
	if err := raise("lo", netip.Prefix{}); err != nil {
		return err
	}
	if err := raise(insideLink, s.Address); err != nil {
		return err
	}
	if err := netlink.RouteAdd(&netlink.Route{Gw: s.Gateway.AsSlice()}); err != nil {
		return fmt.Errorf("adding the default route: %w", err)
	}
	for _, flag := range s.Sysctls {
		if err := os.WriteFile(flag.Path, []byte(flag.Value), 0o644); err != nil {
			return fmt.Errorf("setting a network parameter: %w", err)
		}
	}
	return nil
}

// raise gives the interface an address, if it is valid, and brings it up.
func raise(name string, address netip.Prefix) error {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return fmt.Errorf("finding interface %s: %w", name, err)
	}
	if address.IsValid() {
		if err := netlink.AddrAdd(link, &netlink.Addr{IPNet: ipNet(address)}); err != nil {
			return fmt.Errorf("giving %s the address %s: %w", name, address, err)
		}
	}
	if err := netlink.LinkSetUp(link); err != nil {
		return fmt.Errorf("bringing interface %s up: %w", name, err)
	}
	return nil
}

func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}
