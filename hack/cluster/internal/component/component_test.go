// SPDX-License-Identifier: Apache-2.0

package component

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/mod/modfile"
)

var target = Target{OS: "linux", Arch: "amd64", GoVersion: "go1.26.8"}

func sample() (fstest.MapFS, Component) {
	files := fstest.MapFS{
		"thing/go.mod":  {Data: []byte("module example.test/thing\n\nrequire example.test/upstream v1.2.3\n")},
		"thing/go.sum":  {Data: []byte("example.test/upstream v1.2.3 h1:abc=\n")},
		"thing/main.go": {Data: []byte("package main\n")},
	}
	return files, Component{
		Name: "thing", Module: "example.test/upstream",
		Binaries: []Binary{{Package: ".", Name: "thing"}},
		Stamps:   func(version string) []Stamp { return []Stamp{{"example.test/v.Version", version}} },
	}
}

func cacheName(t *testing.T, files fstest.MapFS, c Component, target Target) string {
	t.Helper()
	source, err := Load(files, c)
	if err != nil {
		t.Fatal(err)
	}
	return source.CacheName(target)
}

// TestCacheNameFollowsEverythingThatChangesTheBinary is the promise that a folder
// found in the cache is never stale, and never rebuilt for nothing.
func TestCacheNameFollowsEverythingThatChangesTheBinary(t *testing.T) {
	cases := map[string]struct {
		change func(fstest.MapFS, *Component, *Target)
		same   bool
	}{
		"nothing":             {func(fstest.MapFS, *Component, *Target) {}, true},
		"a test file":         {func(f fstest.MapFS, _ *Component, _ *Target) { f["thing/main_test.go"] = &fstest.MapFile{} }, true},
		"a text file":         {func(f fstest.MapFS, _ *Component, _ *Target) { f["thing/README"] = &fstest.MapFile{} }, true},
		"another component":   {func(f fstest.MapFS, _ *Component, _ *Target) { f["other/main.go"] = &fstest.MapFile{} }, true},
		"a checksum":          {func(f fstest.MapFS, _ *Component, _ *Target) { f["thing/go.sum"].Data = []byte("x") }, false},
		"the program":         {func(f fstest.MapFS, _ *Component, _ *Target) { f["thing/main.go"].Data = []byte("package x") }, false},
		"a new file":          {func(f fstest.MapFS, _ *Component, _ *Target) { f["thing/sub/x.go"] = &fstest.MapFile{} }, false},
		"a build tag":         {func(_ fstest.MapFS, c *Component, _ *Target) { c.Tags = []string{"x"} }, false},
		"a stamp":             {func(_ fstest.MapFS, c *Component, _ *Target) { c.Stamps = nil }, false},
		"a link":              {func(_ fstest.MapFS, c *Component, _ *Target) { c.Binaries[0].Links = []string{"l"} }, false},
		"a package":           {func(_ fstest.MapFS, c *Component, _ *Target) { c.Binaries[0].Package = "./x" }, false},
		"the architecture":    {func(_ fstest.MapFS, _ *Component, t *Target) { t.Arch = "arm64" }, false},
		"the compiler":        {func(_ fstest.MapFS, _ *Component, t *Target) { t.GoVersion = "go1.27" }, false},
		"bytes moved between": {func(f fstest.MapFS, _ *Component, _ *Target) { moveByte(f) }, false},
	}
	files, c := sample()
	before := cacheName(t, files, c, target)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			files, c := sample()
			aimed := target
			tc.change(files, &c, &aimed)
			if after := cacheName(t, files, c, aimed); (after == before) != tc.same {
				t.Errorf("before %s, after %s, want same: %v", before, after, tc.same)
			}
		})
	}
	if !strings.HasPrefix(before, "thing-v1.2.3-") || len(before) != len("thing-v1.2.3-")+keyLength {
		t.Errorf("cache name %q", before)
	}
}

// moveByte changes two files so that their concatenation stays the same.
func moveByte(files fstest.MapFS) {
	sum, program := files["thing/go.sum"], files["thing/main.go"]
	sum.Data, program.Data = append(sum.Data, program.Data[0]), program.Data[1:]
}

func TestLoadRefuses(t *testing.T) {
	cases := map[string]struct {
		files fstest.MapFS
		want  string
	}{
		"a component without go.mod": {fstest.MapFS{}, "file does not exist"},
		"a malformed go.mod":         {fstest.MapFS{"thing/go.mod": {Data: []byte("nonsense")}}, "unknown directive"},
		"a go.mod without the module that gives the version": {
			fstest.MapFS{"thing/go.mod": {Data: []byte("module x\n")}}, "does not require example.test/upstream",
		},
	}
	_, c := sample()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if _, err := Load(tc.files, c); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}

func TestBuildArgumentsStampTheVersion(t *testing.T) {
	files, c := sample()
	c.Tags = []string{"a", "b"}
	source, err := Load(files, c)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"build", "-v", "-mod=readonly", "-trimpath", "-buildvcs=false", "-gcflags=all=-dwarf=false", "-tags=a,b",
		"-ldflags=-s -w -X example.test/v.Version=v1.2.3", "-o", "/out/thing", ".",
	}
	if diff := cmp.Diff(want, source.BuildArguments(c.Binaries[0], "/out/thing")); diff != "" {
		t.Errorf("arguments (-want +got):\n%s", diff)
	}
}

func TestKubernetesStampsSplitTheVersion(t *testing.T) {
	got := map[string]string{}
	for _, stamp := range kubernetesStamps("v1.37.2") {
		got[strings.TrimPrefix(stamp.Variable, "k8s.io/component-base/version.")] = stamp.Value
	}
	want := map[string]string{"gitVersion": "v1.37.2", "gitMajor": "1", "gitMinor": "37", "gitTreeState": "clean", "gitCommit": "unknown"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("stamps (-want +got):\n%s", diff)
	}
}

// components is the real tree of component modules.
const components = "../../components"

// TestCatalogMatchesTheModules fails when a folder, a go.mod or an entry of the
// catalog is without its counterpart.
func TestCatalogMatchesTheModules(t *testing.T) {
	folders, err := os.ReadDir(components)
	if err != nil {
		t.Fatal(err)
	}
	var present, listed []string
	for _, folder := range folders {
		present = append(present, folder.Name())
	}
	for _, c := range Catalog() {
		listed = append(listed, c.Name)
		source, err := Load(os.DirFS(components), c)
		if err != nil {
			t.Error(err)
			continue
		}
		if !strings.HasPrefix(source.Version, "v") {
			t.Errorf("%s has version %q", c.Name, source.Version)
		}
		if c.Wheel == "" {
			checkTools(t, c)
		}
	}
	slices.Sort(listed)
	if diff := cmp.Diff(present, listed); diff != "" {
		t.Errorf("folders and catalog (-folders +catalog):\n%s", diff)
	}
}

// checkTools makes sure that "go mod tidy" keeps the sums of what is compiled from
// other modules.
func checkTools(t *testing.T, c Component) {
	t.Helper()
	path := filepath.Join(components, c.Name, "go.mod")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	file, err := modfile.Parse(path, data, nil)
	if err != nil {
		t.Fatal(err)
	}
	tools := map[string]bool{}
	for _, tool := range file.Tool {
		tools[tool.Path] = true
	}
	for _, binary := range c.Binaries {
		if binary.Package != "." && !tools[binary.Package] {
			t.Errorf("%s has no tool line for %s", path, binary.Package)
		}
		delete(tools, binary.Package)
	}
	if len(tools) > 0 {
		t.Errorf("%s has tool lines that nothing builds: %v", path, slices.Sorted(maps.Keys(tools)))
	}
}

func TestSets(t *testing.T) {
	names := func(components []Component) (all []string) {
		for _, c := range components {
			all = append(all, c.Name)
		}
		return all
	}
	cases := map[string]struct {
		set  Set
		want []string
	}{
		"the control plane is one component": {SetControlPlane, []string{Kubernetes}},
		"helm is one component":              {SetHelm, []string{Helm}},
		"envoy is that of two versions":      {SetEnvoy, []string{Envoy, EnvoyOldest}},
		"haproxy is one component":           {SetHAProxy, []string{HAProxy}},
		"nginx is one component":             {SetNginx, []string{Nginx}},
		"traefik is one component":           {SetTraefik, []string{Traefik}},
		"moto is one component":              {SetMoto, []string{Moto}},
		"what alerts and metrics come from":  {SetMetrics, []string{Prometheus, Alertmanager}},
		"a cluster with pods needs a node":   {SetPods, []string{Kubernetes, Containerd, CoreDNS, CNI, Pause, Helm, Envoy}},
		"the oldest API server is by itself": {SetOldest, []string{KubernetesOldest}},
		"all is all else":                    {SetAll, []string{Kubernetes, Containerd, CoreDNS, CNI, Pause, Helm, Prometheus, Alertmanager, Envoy, EnvoyOldest, HAProxy, Nginx, Traefik, Moto}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := Of(tc.set)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, names(got)); diff != "" {
				t.Errorf("Of(%s) (-want +got):\n%s", tc.set, diff)
			}
		})
	}
	if _, err := Of("everything"); err == nil || !strings.Contains(err.Error(), "control-plane") {
		t.Errorf("an unknown set gives %v, want an error that lists the sets", err)
	}
}

func TestProviding(t *testing.T) {
	for program, want := range map[string]string{
		"kubectl": Kubernetes, "etcd": Kubernetes, "kubelet": Kubernetes, "ctr": Containerd, "bridge": CNI, "helm": Helm, "pause": Pause, "envoy": Envoy, "envoy-oldest": EnvoyOldest, "haproxy": HAProxy, "nginx": Nginx, "traefik": Traefik, "moto": Moto, "prometheus": Prometheus, "alertmanager": Alertmanager,
		"kube-apiserver": Kubernetes, "kube-apiserver-oldest": KubernetesOldest,
	} {
		if got, known := Providing(program); !known || got.Name != want {
			t.Errorf("Providing(%q) = %q, %v; want %q", program, got.Name, known, want)
		}
	}
	if slices.ContainsFunc(Node(), func(c Component) bool { return c.Name == Envoy }) {
		t.Error("a node waits for Envoy, which it does not run")
	}
	if got, known := Providing("docker"); known {
		t.Errorf("Providing(docker) = %q", got.Name)
	}
}

// TestProgramNamesAreUnique keeps Providing, and the search path of a cluster,
// unambiguous.
func TestProgramNamesAreUnique(t *testing.T) {
	owner := map[string]string{}
	for _, c := range Catalog() {
		for _, b := range c.Binaries {
			for _, name := range append([]string{b.Name}, b.Links...) {
				if other, taken := owner[name]; taken {
					t.Errorf("%s is in %s and in %s", name, other, c.Name)
				}
				owner[name] = c.Name
			}
		}
	}
}
