// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/cli/clitest"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/golden"
)

func TestStatus_Golden(t *testing.T) {
	cases := map[string][]string{
		"default": {"status"},
		"wide":    {"status", "-o", "wide", "-A", "--all"},
		"all":     {"status", "--all"},
		"named":   {"status", "deployment/calm"},
		"bare":    {"status", "--no-headers"},
		"name":    {"status", "-o", "name"},
		"one":     {"status", "deployment/web", "-o", "yaml"},
	}
	for name, args := range cases {
		t.Run(name, func(t *testing.T) {
			got := clitest.Cluster{Objects: clitest.Fleet()}.Run(t, verbs, "", args...)
			if got.Code != 0 || got.Stderr != "" {
				t.Errorf("%q gave %d, %s", args, got.Code, got.Stderr)
			}
			golden.Check(t, filepath.Join("testdata", name+".txt"), got.Stdout)
		})
	}
}

func TestStatus_NamesTheDecisionOfThePolicyAboutEachDrift(t *testing.T) {
	got := clitest.Shop(t, clitest.ActiveBy("alice")).Run(t, verbs, "", "status")
	if got.Code != 0 || got.Stderr != "" {
		t.Errorf("got %d, %s", got.Code, got.Stderr)
	}
	golden.Check(t, filepath.Join("testdata", "policy.txt"), got.Stdout)
}

// A developer may read Baselines, and no policies.
func TestStatus_ShowsDriftToAUserThatMayNotReadPolicies(t *testing.T) {
	f := clitest.Shop(t, clitest.ActiveBy("alice"))
	f.Hooks.List = func(ctx context.Context, api client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
		if _, baselines := list.(*v1alpha1.BaselineList); !baselines {
			return apierrors.NewForbidden(schema.GroupResource{Group: "plumbline.dev"}, "", errors.New("no"))
		}
		return api.List(ctx, list, options...)
	}
	got := f.Run(t, verbs, "", "status")
	if got.Code != 0 || got.Stderr != "" {
		t.Errorf("got %d, %s", got.Code, got.Stderr)
	}
	for _, want := range []string{"1 of 2 objects drifted · decisions of policies unknown: you may not read all that they depend on\n", "✗ deployment.apps/web     High", "<unknown>"} {
		if !strings.Contains(got.Stdout, want) {
			t.Errorf("%q is missing in\n%s", want, got.Stdout)
		}
	}
}

func TestStatus_AsksNoPolicyWithoutADrift(t *testing.T) {
	f := clitest.Cluster{Objects: []client.Object{clitest.BaselineOf("calm")}}
	f.Hooks.List = func(ctx context.Context, api client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
		if _, baselines := list.(*v1alpha1.BaselineList); !baselines {
			t.Errorf("%T was listed", list)
		}
		return api.List(ctx, list, options...)
	}
	const want = "0 of 1 object drifted\n\n✓ 1 in sync (status --all shows them)\n"
	if got := f.Run(t, verbs, "", "status"); got.Stdout != want || got.Code != 0 {
		t.Errorf("got %+v, want %q", got, want)
	}
}

func TestStatus_ExitCodeAnswers(t *testing.T) {
	cases := map[string]struct {
		objects []client.Object
		args    []string
		want    int
	}{
		"all in sync":                            {[]client.Object{clitest.BaselineOf("a"), clitest.BaselineOf("b")}, nil, 0},
		"a retired object beside it":             {[]client.Object{clitest.BaselineOf("a"), clitest.Fleet()[7]}, nil, 0},
		"a drifted object":                       {[]client.Object{clitest.BaselineOf("a"), clitest.Fleet()[2]}, nil, 1},
		"a missing object":                       {[]client.Object{clitest.BaselineOf("a"), clitest.Fleet()[4]}, nil, 1},
		"an object that could not be read":       {[]client.Object{clitest.BaselineOf("a"), clitest.Fleet()[5]}, nil, 2},
		"drift and an unread object":             {[]client.Object{clitest.Fleet()[2], clitest.Fleet()[5]}, nil, 1},
		"an object that was never compared":      {[]client.Object{clitest.BaselineOf("a"), clitest.Fleet()[6]}, nil, 2},
		"nothing guarded":                        {nil, nil, 2},
		"only retired objects":                   {[]client.Object{clitest.Fleet()[7]}, nil, 2},
		"drift that no guard selects any more":   {[]client.Object{clitest.BaselineOf("a"), clitest.BaselineOf("b", clitest.Drifted(clitest.Found("/x", "1", "2", "alice", 0)), clitest.InState(v1alpha1.StateNotGuarded))}, nil, 0},
		"a named object that has no Baseline":    {[]client.Object{clitest.BaselineOf("a")}, []string{"deployment", "a", "b"}, 2},
		"a drifted one beside one without it":    {[]client.Object{clitest.Fleet()[2]}, []string{"deployment", "web", "b"}, 2},
		"a mistake in the command line":          {nil, []string{"-l", "="}, 2},
		"a flag that is not there is a mistake":  {nil, []string{"--nope"}, 1},
		"another namespace is not looked at":     {[]client.Object{inNamespaceOf("other", clitest.Fleet()[2])}, nil, 2},
		"every namespace is, when asked":         {[]client.Object{inNamespaceOf("other", clitest.Fleet()[2])}, []string{"-A"}, 1},
		"a type that nothing guarded is of":      {[]client.Object{clitest.BaselineOf("a")}, []string{"node"}, 2},
		"JSON answers by exit code all the same": {[]client.Object{clitest.Fleet()[2]}, []string{"-o", "json"}, 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := clitest.Cluster{Objects: tc.objects}.Run(t, verbs, "", append([]string{"status", "--exit-code"}, tc.args...)...)
			if got.Code != tc.want {
				t.Errorf("exit code %d, want %d\n%s%s", got.Code, tc.want, got.Stdout, got.Stderr)
			}
		})
	}
}

func inNamespaceOf(namespace string, object client.Object) client.Object {
	object.SetNamespace(namespace)
	return object
}
