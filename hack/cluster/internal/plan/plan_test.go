// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/hack/cluster/internal/address"
	"github.com/plumbline-dev/plumbline/hack/cluster/internal/component"
)

func sample(options Options) Cluster {
	programs := map[string]string{}
	for _, c := range component.Node() {
		programs[c.Name] = "/cache/" + c.Name
	}
	options.Name = "demo"
	return Cluster{Options: options, Network: address.Network{Index: 2}, Programs: programs, Cgroup: CgroupPrefix + "demo-1f2e3d", Root: "/state/demo"}
}

// TestGolden shows the whole plan as one reviewable text per kind of cluster.
func TestGolden(t *testing.T) {
	cases := map[string]Options{
		"node":          {Nodes: 1},
		"control-plane": {Nodes: 0, Audit: true, AuditPolicy: "kind: Policy # mine\n", APIServerArgs: []string{"--v=4"}},
	}
	for name, options := range cases {
		t.Run(name, func(t *testing.T) {
			golden(t, filepath.Join("testdata", name+".golden"), describe(t, sample(options)))
		})
	}
}

// processes are all daemons of a cluster, in the order of their start.
func processes(c Cluster) []Process { return slices.Concat(c.First(), c.Second()) }

func describe(t *testing.T, c Cluster) []byte {
	t.Helper()
	var text bytes.Buffer
	for _, process := range processes(c) {
		fmt.Fprintf(&text, "# process %s, log %s, environment %v\n%s\n", process.Name, process.Log, process.Env, process.Path)
		for _, argument := range process.Args {
			fmt.Fprintf(&text, "  %s\n", argument)
		}
	}
	files, err := c.ConfigFiles()
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		fmt.Fprintf(&text, "# file %s, mode %s\n%s", file.Path, file.Mode, file.Data)
	}
	sandbox, err := json.MarshalIndent(c.Sandbox(), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(&text, "# sandbox\n%s\n", sandbox)
	if c.Options.Nodes > 0 {
		describeAddons(t, c, &text)
	}
	return text.Bytes()
}

func describeAddons(t *testing.T, c Cluster, text *bytes.Buffer) {
	t.Helper()
	addons, err := c.Addons()
	if err != nil {
		t.Fatal(err)
	}
	for _, addon := range addons {
		fmt.Fprintf(text, "# object %s\n%s", addon.Path, addon.YAML)
	}
}

// golden compares with a file, which UPDATE_GOLDEN=1 rewrites.
func golden(t *testing.T, path string, got []byte) {
	t.Helper()
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

// TestEveryFileThatIsReadIsWritten follows each path below the state folder that a
// command line names: either the plan writes it, or the daemon itself makes it.
func TestEveryFileThatIsReadIsWritten(t *testing.T) {
	c := sample(Options{Nodes: 1, Audit: true})
	written := map[string]bool{c.Layout().AuditLog(): true, c.Layout().ContainerdSocket(): true}
	config, err := c.ConfigFiles()
	if err != nil {
		t.Fatal(err)
	}
	credentials, err := c.Credentials(time.Unix(0, 0))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range slices.Concat(config, credentials) {
		if written[file.Path] {
			t.Errorf("%s is written twice", file.Path)
		}
		written[file.Path] = true
	}
	for _, folder := range c.Layout().Folders() {
		written[folder] = true
	}
	read := regexp.MustCompile(regexp.QuoteMeta(c.Root) + `[^\s"]*`)
	for _, process := range processes(c) {
		for _, path := range read.FindAllString(strings.Join(process.Args, "\n"), -1) {
			if !written[path] {
				t.Errorf("%s reads %s, which nobody writes", process.Name, path)
			}
		}
	}
	for _, bind := range c.Sandbox().Binds {
		if !written[bind.Source] {
			t.Errorf("%s is covered by %s, which nobody writes", bind.Target, bind.Source)
		}
	}
	for _, file := range c.AdministratorFiles() {
		if !written[file] {
			t.Errorf("the administrator's %s is not written", file)
		}
	}
}

// TestPrivateKeysAreSecret looks at the content, not at the name.
func TestPrivateKeysAreSecret(t *testing.T) {
	files, err := sample(Options{Nodes: 1}).Credentials(time.Unix(0, 0))
	if err != nil {
		t.Fatal(err)
	}
	secrets := 0
	for _, file := range files {
		if bytes.Contains(file.Data, []byte("PRIVATE KEY")) || bytes.Contains(file.Data, []byte("client-key-data")) {
			secrets++
			if file.Mode != fs.FileMode(0o600) {
				t.Errorf("%s holds a private key and has mode %s", file.Path, file.Mode)
			}
		}
	}
	if secrets < 10 {
		t.Errorf("only %d secret files: the test does not see them", secrets)
	}
}

// TestClustersShareNothing compares two clusters of different name and index.
func TestClustersShareNothing(t *testing.T) {
	one, two := sample(Options{Nodes: 1}), sample(Options{Nodes: 1})
	two.Options.Name, two.Network.Index, two.Root, two.Cgroup = "other", 3, "/state/other", CgroupPrefix+"other-000000"
	text := string(describe(t, two))
	for _, ours := range []string{one.Root, one.Cgroup, one.NodeName(), "10.194."} {
		if strings.Contains(text, ours) {
			t.Errorf("the second cluster mentions %s of the first", ours)
		}
	}
}

// TestHostRegistry: images are named localhost:PORT on both sides of the link, and
// containerd must look for them on the other one.
func TestHostRegistry(t *testing.T) {
	c := sample(Options{Nodes: 1, HostRegistry: 5001})
	files, err := c.ConfigFiles()
	if err != nil {
		t.Fatal(err)
	}
	content := map[string]string{}
	for _, file := range files {
		content[file.Path] = string(file.Data)
	}
	const folder = "/state/demo/config/registries"
	if got, want := content[folder+"/localhost_5001_/hosts.toml"], "server = \"http://10.194.255.1:5001\"\n"; got != want {
		t.Errorf("hosts.toml holds %q, want %q", got, want)
	}
	if want := "[plugins.'io.containerd.cri.v1.images'.registry]\n  config_path = \"" + folder + "\"\n"; !strings.HasSuffix(content["/state/demo/config/containerd.toml"], want) {
		t.Errorf("containerd.toml does not end with %q:\n%s", want, content["/state/demo/config/containerd.toml"])
	}
	if got := c.Options.HostRegistryName(); got != "localhost:5001" {
		t.Errorf("name %q", got)
	}
}

func TestNoNodeMeansNoNodeProcesses(t *testing.T) {
	var names []string
	for _, process := range processes(sample(Options{})) {
		names = append(names, process.Name)
	}
	if diff := cmp.Diff([]string{Etcd, APIServer, ControllerManager}, names); diff != "" {
		t.Errorf("processes (-want +got):\n%s", diff)
	}
}

func TestExtraAPIServerArgumentsComeLast(t *testing.T) {
	// The flag library takes the last of equal flags: the user's must win.
	args := sample(Options{APIServerArgs: []string{"--authorization-mode=AlwaysAllow"}}).apiServerArgs()
	if got := args[len(args)-1]; got != "--authorization-mode=AlwaysAllow" {
		t.Errorf("last argument %q", got)
	}
}

func TestCheckName(t *testing.T) {
	cases := map[string]bool{
		"demo": true, "a": true, "e2e-1": true, "a23456789012345678901234567890": true,
		"": false, "Demo": false, "1a": false, "a-": false, "-a": false, "a_b": false, "a/b": false, "..": false,
		"a234567890123456789012345678901": false,
	}
	for name, valid := range cases {
		if err := CheckName(name); (err == nil) != valid {
			t.Errorf("CheckName(%q) = %v, want valid: %v", name, err, valid)
		}
	}
}

func TestCheckRoot(t *testing.T) {
	cases := map[string]struct{ root, want string }{
		"a folder below a home is fine":         {"/home/me/.cache/plumbline/clusters/demo", ""},
		"a folder that looks covered is fine":   {"/runner/state/demo", ""},
		"a folder below /run is covered":        {"/run/plumbline/demo", "inside /run"},
		"a folder below /var/log is covered":    {"/var/log/demo", "inside /var/log"},
		"a long folder breaks sockets":          {"/" + strings.Repeat("x", 80), "bytes too long"},
		"the kubelet's own folder is covered":   {"/var/lib/kubelet/demo", "inside /var/lib/kubelet"},
		"a sibling of the kubelet's is allowed": {"/var/lib/plumbline/demo", ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := CheckRoot(tc.root)
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("CheckRoot(%q) = %v, want %q", tc.root, err, tc.want)
			}
		})
	}
}

func TestEnterArgsKeepTheCommandApart(t *testing.T) {
	want := []string{"--target", "42", "--mount", "--net", "--pid", "--uts", "--ipc", "--", "ls", "--all"}
	if diff := cmp.Diff(want, EnterArgs(42, []string{"ls", "--all"})); diff != "" {
		t.Errorf("arguments (-want +got):\n%s", diff)
	}
}
