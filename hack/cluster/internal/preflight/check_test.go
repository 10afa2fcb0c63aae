// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// capable is a machine that can do everything.
func capable() Facts {
	commands := map[string]bool{}
	for command := range packageOf {
		commands[command] = true
	}
	return Facts{
		OS: "linux", Root: true, FreeDisk: 50 * gib, Memory: 16 * gib, Cgroup: 2,
		Controllers: []string{"cpu", "cpuset", "io", "memory", "pids"},
		Commands:    commands, AptGet: true,
		Kernel: map[string]string{FeatureNamespaces: "", FeatureVeth: "", FeatureBridge: "", FeatureOverlay: "", FeatureNAT: ""},
	}
}

var everything = Need{Node: true, Build: true, Wheel: true}

var checkCases = map[string]struct {
	change func(*Facts)
	need   Need
	want   []string // what each fault says, in order; nil when there is none
}{
	"a capable machine has no fault": {func(*Facts) {}, everything, nil},
	"version 1 of control groups will do": {
		func(f *Facts) { f.Cgroup = 1 }, everything, nil,
	},
	"another operating system is the only fault worth telling": {
		func(f *Facts) { f.OS, f.Root, f.Memory = "darwin", false, 0 }, everything, []string{"operating system darwin"},
	},
	"not root": {
		func(f *Facts) { f.Root = false }, everything, []string{"not root"},
	},
	"what cannot be tried without root is no fault": {
		func(f *Facts) { f.Root, f.Kernel = false, map[string]string{FeatureVeth: "EPERM"} }, everything, []string{"not root"},
	},
	"a full disk": {
		func(f *Facts) { f.FreeDisk = 5 * gib }, everything, []string{"5.0 GiB of disk free"},
	},
	"the same disk is enough when nothing is to be built": {
		func(f *Facts) { f.FreeDisk = 5 * gib }, Need{Node: true}, nil,
	},
	"little memory": {
		func(f *Facts) { f.Memory = gib }, everything, []string{"1.0 GiB of memory"},
	},
	"no Go, which is no Debian package": {
		func(f *Facts) { f.Commands["go"] = false }, everything, []string{"no Go toolchain"},
	},
	"no Go is no fault when nothing is to be built": {
		func(f *Facts) { f.Commands["go"] = false }, Need{Node: true}, nil,
	},
	"missing commands are one fault with one command": {
		func(f *Facts) {
			f.Commands["runc"], f.Commands["iptables"], f.Commands["ip6tables"] = false, false, false
		}, everything,
		[]string{"not installed: iptables, ip6tables, runc: on Debian: sudo apt-get install --no-install-recommends iptables runc"},
	},
	"no pip": {
		func(f *Facts) { f.Commands["pip"] = false }, everything,
		[]string{"not installed: pip: on Debian: sudo apt-get install --no-install-recommends python3-pip"},
	},
	"no pip is no fault when no wheel is to be fetched": {
		func(f *Facts) { f.Commands["pip"] = false }, Need{Node: true, Build: true}, nil,
	},
	"a control plane alone needs none of them": {
		func(f *Facts) { f.Commands, f.Cgroup = map[string]bool{}, 0 }, Need{}, nil,
	},
	"no control groups": {
		func(f *Facts) { f.Cgroup, f.Controllers = 0, nil }, everything, []string{"no control groups"},
	},
	"a controller is missing": {
		func(f *Facts) { f.Controllers = []string{"cpu", "memory"} }, everything,
		[]string{"control group controllers lacking (version 2): cpuset, pids"},
	},
	"a kernel without bridges": {
		func(f *Facts) { f.Kernel[FeatureBridge] = "operation not supported" }, everything,
		[]string{"bridge network links: operation not supported"},
	},
	"a control plane alone needs no bridge, but its link": {
		func(f *Facts) { f.Kernel[FeatureBridge], f.Kernel[FeatureVeth] = "no", "no" }, Need{}, []string{"veth network links: no"},
	},
	"all faults at once": {
		func(f *Facts) { f.Root, f.Memory, f.Commands["runc"], f.Cgroup = false, 0, false, 0 }, everything,
		[]string{"not root", "0.0 GiB of memory", "not installed: runc", "no control groups"},
	},
}

func TestCheck(t *testing.T) {
	for name, tc := range checkCases {
		t.Run(name, func(t *testing.T) {
			facts := capable()
			tc.change(&facts)
			err := Check(facts, tc.need)
			if tc.want == nil {
				if err != nil {
					t.Fatalf("unexpected: %v", err)
				}
				return
			}
			if err == nil {
				t.Fatalf("no fault, want %q", tc.want)
			}
			lines := strings.Split(err.Error(), "\n  - ")[1:]
			if len(lines) != len(tc.want) {
				t.Fatalf("%d faults, want %d:\n%v", len(lines), len(tc.want), err)
			}
			for i, want := range tc.want {
				if !strings.HasPrefix(lines[i], want) {
					t.Errorf("fault %d is %q, want %q", i, lines[i], want)
				}
			}
		})
	}
}

func TestInstallable(t *testing.T) {
	cases := map[string]struct {
		change func(*Facts)
		want   []string
	}{
		"nothing is missing": {func(*Facts) {}, nil},
		"each package once": {func(f *Facts) {
			f.Commands["iptables"], f.Commands["ip6tables"], f.Commands["runc"] = false, false, false
		}, []string{"iptables", "runc"}},
		"Go is not installed":         {func(f *Facts) { f.Commands["go"] = false }, nil},
		"not without root":            {func(f *Facts) { f.Commands["runc"], f.Root = false, false }, nil},
		"not without apt-get":         {func(f *Facts) { f.Commands["runc"], f.AptGet = false, false }, nil},
		"not in vain, on a full disk": {func(f *Facts) { f.Commands["runc"], f.FreeDisk = false, 0 }, nil},
		"not in vain, without Go":     {func(f *Facts) { f.Commands["runc"], f.Commands["go"] = false, false }, nil},
		"what the kernel can is tried with a package": {func(f *Facts) {
			f.Commands["iptables"], f.Kernel = false, map[string]string{FeatureNAT: "iptables: not found"}
		}, []string{"iptables"}},
		"redis-server is wanted": {func(f *Facts) { f.Commands["redis-server"] = false }, []string{"redis-server"}},
		"the browser is wanted":  {func(f *Facts) { f.Commands["chromium-headless-shell"] = false }, []string{"chromium-headless-shell"}},
		"pip is wanted":          {func(f *Facts) { f.Commands["pip"] = false }, []string{"python3-pip"}},
		"the tools of the tests are wanted": {func(f *Facts) {
			f.Commands["jq"], f.Commands["openssl"], f.Commands["setpriv"] = false, false, false
		}, []string{"jq", "openssl", "util-linux"}},
		"basic tools are as well": {func(f *Facts) { f.Commands["nsenter"], f.Commands["mount"] = false, false }, []string{"mount", "util-linux"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			facts := capable()
			facts.Commands = maps.Clone(facts.Commands)
			tc.change(&facts)
			if diff := cmp.Diff(tc.want, Installable(facts, everything)); diff != "" {
				t.Errorf("Installable (-want +got):\n%s", diff)
			}
		})
	}
}

func TestEveryNeededCommandHasAPackage(t *testing.T) {
	for _, command := range neededCommands(everything) {
		if packageOf[command] == "" {
			t.Errorf("no package for %s", command)
		}
	}
}
