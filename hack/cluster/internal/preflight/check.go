// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Facts is what is known about the machine.
type Facts struct {
	OS          string
	Root        bool
	FreeDisk    uint64            // bytes, where the cache is
	Memory      uint64            // bytes
	Cgroup      int               // version 1 or 2; 0 when none is mounted
	Controllers []string          // of the control groups
	Commands    map[string]bool   // by name: is it in the PATH
	AptGet      bool              // this is a Debian, or near enough
	Kernel      map[string]string // by feature: why it does not work, or ""
}

// Need is what the machine is wanted for.
type Need struct {
	Node  bool // pods are to run
	Build bool // something must be compiled first
	Wheel bool // something must be fetched with pip first
}

// Fault is one thing that is lacking, with what to do about it.
type Fault struct{ What, Remedy string }

// FaultsError is the error that [Check] returns.
type FaultsError []Fault

// Error lists every fault, each with its remedy.
func (f FaultsError) Error() string {
	var text strings.Builder
	text.WriteString("this machine cannot run a cluster yet:")
	for _, fault := range f {
		fmt.Fprintf(&text, "\n  - %s: %s", fault.What, fault.Remedy)
	}
	return text.String()
}

const (
	gib = 1 << 30
	// A cold build fills Go's module and build caches with about 10 GiB.
	diskToBuild = 12 * gib
	diskToRun   = 1 * gib
	// Linking the Kubernetes daemons is what needs most.
	memoryToBuild = 3 * gib
	memoryToRun   = 2 * gib
)

// controllersOfNode are the control group controllers without which the kubelet
// does not start a pod.
var controllersOfNode = []string{"cpu", "cpuset", "memory", "pids"}

// Check returns nil, or [FaultsError] with everything that is lacking.
func Check(f Facts, n Need) error {
	if f.OS != "linux" {
		return FaultsError{{"operating system " + f.OS, "clusters run on Linux only; use a virtual machine, or CLUSTER=current with a cluster of yours"}}
	}
	var faults FaultsError
	if !f.Root {
		faults = append(faults, Fault{"not root", "namespaces, mounts and network links need root: repeat with sudo"})
	}
	faults = append(faults, sizeFaults(f, n)...)
	faults = append(faults, commandFaultsError(f, n)...)
	faults = append(faults, cgroupFaultsError(f, n)...)
	if f.Root { // the features can only be tried as root
		faults = append(faults, kernelFaultsError(f, n)...)
	}
	if len(faults) == 0 {
		return nil
	}
	return faults
}

func sizeFaults(f Facts, n Need) (faults FaultsError) {
	disk, memory := uint64(diskToRun), uint64(memoryToRun)
	if n.Build {
		disk, memory = diskToBuild, memoryToBuild
	}
	if f.FreeDisk < disk {
		faults = append(faults, Fault{
			fmt.Sprintf("%.1f GiB of disk free where the cache is", float64(f.FreeDisk)/gib),
			fmt.Sprintf("%d GiB are needed; make room, or move the cache with PLUMBLINE_CACHE", disk/gib),
		})
	}
	if f.Memory < memory {
		faults = append(faults, Fault{
			fmt.Sprintf("%.1f GiB of memory", float64(f.Memory)/gib),
			fmt.Sprintf("%d GiB are needed", memory/gib),
		})
	}
	return faults
}

// packageOf names the Debian package of each command that a cluster uses.
var packageOf = map[string]string{
	"chromium-headless-shell": "chromium-headless-shell",
	"go":                      "golang-go",
	"iptables":                "iptables",
	"iptables-restore":        "iptables",
	"ip6tables":               "iptables",
	"jq":                      "jq",
	"mount":                   "mount",
	"nsenter":                 "util-linux",
	"openssl":                 "openssl",
	"pip":                     "python3-pip",
	"redis-server":            "redis-server",
	"runc":                    "runc",
	"setpriv":                 "util-linux",
}

// neededCommands lists the commands that the need calls for.
func neededCommands(n Need) []string {
	var commands []string
	if n.Build {
		commands = append(commands, "go")
	}
	if n.Wheel {
		commands = append(commands, "pip")
	}
	if n.Node {
		// redis-server is what the Redis image and the integration tests are made of. Tests
		// try the commands of docs/reference/evidence.md with openssl and jq, and bind
		// processes with setpriv. They open the pages of the console in chromium-headless-shell.
		commands = append(commands, "chromium-headless-shell", "iptables", "iptables-restore", "ip6tables", "jq", "mount", "nsenter", "openssl", "redis-server", "runc", "setpriv")
	}
	return commands
}

func missingCommands(f Facts, n Need) []string {
	return slices.DeleteFunc(neededCommands(n), func(command string) bool { return f.Commands[command] })
}

// packagesOf returns the packages of the commands, sorted and each once. Debian's
// Go is too old for us, so Go is never among them.
func packagesOf(commands []string) []string {
	packages := map[string]bool{}
	for _, command := range commands {
		if command != "go" {
			packages[packageOf[command]] = true
		}
	}
	return slices.Sorted(maps.Keys(packages))
}

// Installable lists the Debian packages that [Install] should install: none when
// the machine lacks something else as well, and would be changed in vain.
func Installable(f Facts, n Need) []string {
	if !f.AptGet || Check(cured(f), n) != nil {
		return nil
	}
	return packagesOf(missingCommands(f, n))
}

// cured is the machine after every package was installed. Its kernel is not known
// before: some features are tried with programs of those packages.
func cured(f Facts) Facts {
	commands := map[string]bool{}
	for command := range packageOf {
		commands[command] = command != "go" || f.Commands[command]
	}
	f.Commands, f.Kernel = commands, nil
	return f
}

func commandFaultsError(f Facts, n Need) (faults FaultsError) {
	missing := missingCommands(f, n)
	if slices.Contains(missing, "go") {
		faults = append(faults, Fault{"no Go toolchain", "install Go 1.26 or newer from https://go.dev/dl"})
	}
	packages := packagesOf(missing)
	if len(packages) == 0 {
		return faults
	}
	absent := slices.DeleteFunc(missing, func(command string) bool { return command == "go" })
	return append(faults, Fault{
		"not installed: " + strings.Join(absent, ", "),
		"on Debian: sudo apt-get install --no-install-recommends " + strings.Join(packages, " "),
	})
}

func cgroupFaultsError(f Facts, n Need) FaultsError {
	if !n.Node {
		return nil
	}
	if f.Cgroup == 0 {
		return FaultsError{{"no control groups", "mount cgroup2 at /sys/fs/cgroup, or run on a machine whose init does"}}
	}
	var lacking []string
	for _, controller := range controllersOfNode {
		if !slices.Contains(f.Controllers, controller) {
			lacking = append(lacking, controller)
		}
	}
	if len(lacking) == 0 {
		return nil
	}
	return FaultsError{{
		fmt.Sprintf("control group controllers lacking (version %d): %s", f.Cgroup, strings.Join(lacking, ", ")),
		"enable them on the kernel's command line, or, in a container, run on the host instead",
	}}
}

func kernelFaultsError(f Facts, n Need) (faults FaultsError) {
	for _, feature := range slices.Sorted(maps.Keys(f.Kernel)) {
		problem := f.Kernel[feature]
		if problem == "" || (!n.Node && feature != FeatureNamespaces && feature != FeatureVeth) {
			continue
		}
		faults = append(faults, Fault{feature + ": " + problem, "this kernel, or the container this runs in, does not allow it"})
	}
	return faults
}
