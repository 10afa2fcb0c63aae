// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/plumbline-dev/plumbline/test/harness/child"
)

const module = "github.com/plumbline-dev/plumbline"

type listedPackage struct {
	ImportPath string
	Imports    []string
	Deps       []string
}

// layers from the outside in; a package may import its own layer and those after it.
var layers = []string{"cmd", "hack", "test", "internal", "pkg"}

func TestImportsPointInwards(t *testing.T) {
	for _, p := range listPackages(t) {
		from := layerOf(p.ImportPath)
		for _, imported := range p.Imports {
			to := layerOf(imported)
			if from < 0 || to < 0 {
				continue
			}
			if to < from {
				t.Errorf("%s imports %s: imports go from cmd to internal to pkg, never back", p.ImportPath, imported)
			}
		}
	}
}

func TestCanonicalHashStandsAlone(t *testing.T) {
	for _, p := range listPackages(t) {
		if p.ImportPath != module+"/pkg/specguard/canon" {
			continue
		}
		for _, dep := range p.Deps {
			if strings.Contains(strings.SplitN(dep, "/", 2)[0], ".") && !strings.HasPrefix(dep, "golang.org/x/sys") {
				t.Errorf("canon depends on %s: it must be the standard library alone", dep)
			}
		}
		return
	}
	t.Fatal("pkg/specguard/canon not found")
}

func TestTrafficAndRemediateNeverMeet(t *testing.T) {
	for _, p := range listPackages(t) {
		for _, pair := range [][2]string{{"pkg/traffic", "pkg/remediate"}, {"pkg/remediate", "pkg/traffic"}} {
			if !inTree(p.ImportPath, pair[0]) {
				continue
			}
			for _, dep := range p.Deps {
				if inTree(dep, pair[1]) {
					t.Errorf("%s depends on %s: they meet in internal/controller", p.ImportPath, dep)
				}
			}
		}
	}
}

// importReconcilers are the packages of internal that wire processes, and so may import
// reconcilers.
var importReconcilers = []string{"internal/assessor", "internal/executor"}

// A package that imports a reconciler for a value depends on the client, the queue and the
// status of that reconciler, and the picture of imports by folder has a cycle.
func TestOnlyTheWiringImportsReconcilers(t *testing.T) {
	const tree = "internal/controller"
	wired := map[string]bool{}
	for _, p := range listPackages(t) {
		name, ours := strings.CutPrefix(p.ImportPath, module+"/")
		if !ours || !inTree(p.ImportPath, "internal") {
			continue
		}
		for _, imported := range p.Imports {
			switch {
			case !inTree(imported, tree):
			case slices.Contains(importReconcilers, name):
				wired[name] = true
			default:
				t.Errorf("%s imports %s: a value that several packages read has a package beside %s", p.ImportPath, imported, tree)
			}
		}
	}
	for _, name := range importReconcilers {
		if !wired[name] {
			t.Errorf("%s imports no reconciler: remove the package from importReconcilers", name)
		}
	}
}

// The counts of proxies need the names of Envoy clusters and nothing else of the resources
// that proxies get.
func TestSignalsKnowNoResourcesOfEnvoy(t *testing.T) {
	found := false
	for _, p := range listPackages(t) {
		if !inTree(p.ImportPath, "pkg/traffic/signals") {
			continue
		}
		found = true
		for _, dep := range p.Deps {
			if inTree(dep, "pkg/traffic/envoyxds") {
				t.Errorf("%s depends on %s: the names of Envoy clusters are in pkg/traffic/envoyname", p.ImportPath, dep)
			}
		}
	}
	if !found {
		t.Fatal("pkg/traffic/signals not found")
	}
}

// What a person may ask for is not the command line's: an API asks the same.
func TestActionsKnowNoCommandLine(t *testing.T) {
	const core = module + "/internal/actions"
	found := false
	for _, p := range listPackages(t) {
		if !inTree(p.ImportPath, "internal/actions") {
			continue
		}
		found = found || p.ImportPath == core
		for _, dep := range p.Deps {
			// Libraries of Kubernetes bring pflag with them; the core needs none of these.
			flags := strings.HasPrefix(dep, "github.com/spf13/") && (p.ImportPath == core || dep != "github.com/spf13/pflag")
			if inTree(dep, "internal/cli") || flags || strings.HasPrefix(dep, "k8s.io/cli-runtime/") {
				t.Errorf("%s depends on %s: it must know no command line", p.ImportPath, dep)
			}
		}
		if i := slices.IndexFunc(p.Imports, func(imported string) bool { return strings.HasPrefix(imported, "github.com/spf13/") }); i >= 0 {
			t.Errorf("%s imports %s: it must know no command line", p.ImportPath, p.Imports[i])
		}
	}
	if !found {
		t.Fatal("internal/actions not found")
	}
}

// The library of the REST API makes schemas from Go types. It has variables of its package for
// settings, so two users of it would change each other.
func TestOneTreeUsesTheLibraryOfTheRESTAPI(t *testing.T) {
	const tree, library = "internal/httpapi", "github.com/danielgtaylor/huma/"
	used := false
	for _, p := range listPackages(t) {
		i := slices.IndexFunc(p.Imports, func(imported string) bool { return strings.HasPrefix(imported, library) })
		if used = used || i >= 0; i >= 0 && !inTree(p.ImportPath, tree) {
			t.Errorf("%s imports %s: only %s does", p.ImportPath, p.Imports[i], tree)
		}
	}
	if !used {
		t.Fatalf("no package imports %s", library)
	}
}

// The REST API makes its answers from values, so that each door and each replica sends the same.
func TestTheWireModelReachesNoCluster(t *testing.T) {
	models := map[string]bool{module + "/internal/httpapi/wire": false, module + "/internal/httpapi/events": false}
	for _, p := range listPackages(t) {
		if _, is := models[p.ImportPath]; !is {
			continue
		}
		models[p.ImportPath] = true
		for _, dep := range p.Deps {
			if strings.HasPrefix(dep, "k8s.io/client-go/") || strings.HasPrefix(dep, "sigs.k8s.io/controller-runtime/") {
				t.Errorf("%s depends on %s: it must have no effects", p.ImportPath, dep)
			}
		}
	}
	for model, found := range models {
		if !found {
			t.Errorf("%s not found", model)
		}
	}
}

// sharedByVerbs are the packages of the plugin that the packages of its verbs may import.
var sharedByVerbs = []string{"invocation", "guarded", "comparison", "documents", "remediation", "preview"}

// A verb of the plugin that reaches into another one would make both one package again.
func TestVerbsOfThePluginShareNoCode(t *testing.T) {
	const tree = module + "/internal/cli/"
	verbs := 0
	for _, p := range listPackages(t) {
		verb, below := strings.CutPrefix(p.ImportPath, tree)
		if !below {
			continue
		}
		if !slices.Contains(sharedByVerbs, verb) {
			verbs++
		}
		for _, imported := range p.Imports {
			other, ours := strings.CutPrefix(imported, tree)
			if ours && !slices.Contains(sharedByVerbs, other) {
				t.Errorf("internal/cli/%s imports internal/cli/%s: what two verbs need has a home below them", verb, other)
			}
			if imported == module+"/internal/cli" {
				t.Errorf("internal/cli/%s imports internal/cli: the tree of commands is above the verbs", verb)
			}
		}
	}
	if verbs < 10 {
		t.Errorf("only %d verbs of the plugin were found", verbs)
	}
}

func inTree(importPath, tree string) bool {
	rel := strings.TrimPrefix(importPath, module+"/")
	return rel == tree || strings.HasPrefix(rel, tree+"/")
}

func layerOf(importPath string) int {
	rel, ok := strings.CutPrefix(importPath, module+"/")
	if !ok {
		return -1
	}
	head, _, _ := strings.Cut(rel, "/")
	return slices.Index(layers, head)
}

// known is kept for all tests of this package, which run one after another.
var known []listedPackage

func listPackages(t *testing.T) []listedPackage {
	t.Helper()
	if known != nil {
		return known
	}
	var err error
	if known, err = list(); err != nil {
		t.Fatal(err)
	}
	if len(known) == 0 {
		t.Fatal("go list found no package")
	}
	return known
}

// list asks the go command, whose answer takes seconds.
func list() (packages []listedPackage, err error) {
	cmd := child.Bind(exec.CommandContext(context.Background(), "go", "list", "-deps=false", "-json=ImportPath,Imports,Deps", module+"/..."))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("listing packages: %w\n%s", err, stderr.String())
	}
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listedPackage
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return packages, nil
		} else if err != nil {
			return nil, fmt.Errorf("decoding the list of packages: %w", err)
		}
		packages = append(packages, p)
	}
}
