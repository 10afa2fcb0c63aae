// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// TestAddToScheme_KnowsEveryCRD: a kind that is installed and not registered
// could be neither read nor written by our own clients.
func TestAddToScheme_KnowsEveryCRD(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join("..", "..", "..", "..", "charts", "plumbline", "files", "crds", "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("CRD files: %v, %v", files, err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var crd apiextensionsv1.CustomResourceDefinition
		if err := yaml.UnmarshalStrict(raw, &crd); err != nil {
			t.Fatalf("reading %s: %v", file, err)
		}
		for _, kind := range []string{crd.Spec.Names.Kind, crd.Spec.Names.ListKind} {
			if !scheme.Recognizes(v1alpha1.GroupVersion.WithKind(kind)) {
				t.Errorf("%s is not registered", kind)
			}
		}
	}
}

// TestEnums_HaveOneConstantEach: the values that a marker allows and the
// constants of its type are the same set.
func TestEnums_HaveOneConstantEach(t *testing.T) {
	allowed, constants := enums(t)
	if len(allowed) < 10 {
		t.Fatalf("only %d enums found, so this test would prove little", len(allowed))
	}
	if diff := cmp.Diff(allowed, constants); diff != "" {
		t.Errorf("values in markers and in constants (-markers +constants):\n%s", diff)
	}
}

// enums reads the source: by type, the values of its Enum marker and those of
// its constants, sorted.
func enums(t *testing.T) (allowed, constants map[string][]string) {
	t.Helper()
	allowed, constants = map[string][]string{}, map[string][]string{}
	files, err := filepath.Glob("*_types.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range file.Decls {
			if gen, ok := decl.(*ast.GenDecl); ok {
				readEnum(gen, allowed)
				readConstants(gen, constants)
			}
		}
	}
	return allowed, constants
}

func readEnum(gen *ast.GenDecl, allowed map[string][]string) {
	const marker = "// +kubebuilder:validation:Enum="
	if gen.Tok != token.TYPE || gen.Doc == nil {
		return
	}
	for _, line := range gen.Doc.List {
		if values, ok := strings.CutPrefix(line.Text, marker); ok {
			name := gen.Specs[0].(*ast.TypeSpec).Name.Name
			allowed[name] = slices.Sorted(strings.SplitSeq(values, ";"))
		}
	}
}

func readConstants(gen *ast.GenDecl, constants map[string][]string) {
	for _, spec := range gen.Specs {
		value, ok := spec.(*ast.ValueSpec)
		if !ok || gen.Tok != token.CONST || value.Type == nil {
			continue
		}
		text, err := strconv.Unquote(value.Values[0].(*ast.BasicLit).Value)
		if err != nil {
			continue
		}
		name := value.Type.(*ast.Ident).Name
		constants[name] = append(constants[name], text)
		slices.Sort(constants[name])
	}
}

// TestJSON_WritesWhatTheSchemaWants: the fields whose zero is a fact are
// written, those whose zero is "not said" are not, since the schema refuses an
// empty string where a name belongs.
func TestJSON_WritesWhatTheSchemaWants(t *testing.T) {
	since := metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	cases := map[string]struct {
		in   any
		want string
	}{
		"a guard without a status leaves it out": {
			v1alpha1.SpecGuard{Spec: v1alpha1.GuardSpec{Resources: []v1alpha1.GuardedResource{{APIVersion: "v1", Kind: "Pod"}}}},
			`{"metadata":{},"spec":{"resources":[{"apiVersion":"v1","kind":"Pod"}]}}`,
		},
		"a guard of nothing says so": {
			v1alpha1.GuardStatus{ObservedGeneration: 1},
			`{"observedGeneration":1,"objects":0,"drifted":0,"unknown":0}`,
		},
		"a finding about the whole object has an empty path": {
			v1alpha1.Finding{
				Operation: v1alpha1.OperationAdded, Type: v1alpha1.DriftUnexpected, Class: v1alpha1.ClassObjectUnexpected, FirstSeenTime: since,
				Actor: v1alpha1.Actor{Class: v1alpha1.ActorUnknown, Source: v1alpha1.ActorSourceNone},
			},
			`{"path":"","operation":"Added","type":"Unexpected","class":"ObjectUnexpected","actor":{"class":"Unknown","source":"None"},"firstSeenTime":"2026-01-01T00:00:00Z"}`,
		},
		"a score of zero is written": {
			v1alpha1.Severity{Level: v1alpha1.SeverityInfo, Factors: []v1alpha1.SeverityFactor{{Name: v1alpha1.FactorComponentCriticality, Weight: 15}}},
			`{"level":"Info","score":0,"factors":[{"name":"ComponentCriticality","score":0,"weight":15}]}`,
		},
		"a baseline without an authorized state has no field for it": {
			v1alpha1.BaselineSpec{Target: v1alpha1.BaselineTarget{APIVersion: "v1", Kind: "Pod", Name: "web"}},
			`{"target":{"apiVersion":"v1","kind":"Pod","name":"web"}}`,
		},
		"no checks are written as 0s": {
			v1alpha1.CheckDefaults{ResyncPeriod: &metav1.Duration{}},
			`{"resyncPeriod":"0s"}`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := json.Marshal(tc.in)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, string(got)); diff != "" {
				t.Errorf("JSON (-want +got):\n%s", diff)
			}
		})
	}
}
