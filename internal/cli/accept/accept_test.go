// SPDX-License-Identifier: Apache-2.0

package accept

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/plumbline-dev/plumbline/internal/cli/clitest"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/golden"
)

// racing answers the first n patches with a conflict, after between has
// changed the Baseline.
func racing(n int, between func(*v1alpha1.Baseline)) interceptor.Funcs {
	return interceptor.Funcs{
		Patch: func(ctx context.Context, api client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
			if n--; n < 0 {
				return api.Patch(ctx, object, patch, options...)
			}
			current := &v1alpha1.Baseline{}
			if err := api.Get(ctx, client.ObjectKeyFromObject(object), current); err != nil {
				return err
			}
			between(current)
			if err := api.Status().Update(ctx, current); err != nil {
				return err
			}
			return apierrors.NewConflict(schema.GroupResource{Group: "plumbline.dev", Resource: "baselines"}, object.GetName(), nil)
		},
	}
}

func TestAccept_OnlyTheStateThatWasShown(t *testing.T) {
	web := func() client.Object {
		return clitest.BaselineOf("web", clitest.Drifted(clitest.Found("/spec/replicas", "1", "5", "alice", time.Minute)))
	}
	touch := func(b *v1alpha1.Baseline) { at := clitest.Before(0); b.Status.LastCheckTime = &at }
	move := func(b *v1alpha1.Baseline) { b.Status.Observed.Hash = "pl1:sha256:moved" }
	cases := map[string]struct {
		hooks interceptor.Funcs
		want  clitest.Answer
	}{
		"status writes in between are retried": {racing(7, touch), clitest.Answer{Stdout: "shop/deployment.apps/web acceptance requested\n"}},
		"a change in between is refused":       {racing(1, move), clitest.Answer{Code: 1, Stderr: "error: shop/deployment.apps/web was not accepted: it changed since it was shown: now pl1:sha256:moved\n"}},
		"endless conflicts end":                {racing(1<<30, touch), clitest.Answer{Code: 1, Stderr: "error: shop/deployment.apps/web was not accepted: its Baseline was written by others 100 times in a row; try again\n"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := clitest.Cluster{Objects: []client.Object{web()}, Hooks: tc.hooks}.Run(t, verbs, "", "accept", "deployment/web", "--wait=false")
			_, got.Stderr, _ = strings.Cut(got.Stderr, "by alice, 60s ago\n")
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestAccept_AsksBeforeBulk(t *testing.T) {
	cases := map[string]struct {
		stdin string
		args  []string
		code  int
		want  string // last line of standard error
		sent  bool
	}{
		"yes":                            {stdin: "y\n", sent: true, want: "Accept 3 object(s)? (y/N): "},
		"yes, in full":                   {stdin: "YES\n", sent: true, want: "Accept 3 object(s)? (y/N): "},
		"no":                             {stdin: "n\n", code: 1, want: "Accept 3 object(s)? (y/N): error: nothing was accepted\n"},
		"return alone is no":             {stdin: "\n", code: 1, want: "Accept 3 object(s)? (y/N): error: nothing was accepted\n"},
		"nobody there":                   {code: 1, want: "error: nothing was accepted: accepting in bulk needs a confirmation, and standard input is no terminal; use --yes\n"},
		"nobody there, but told":         {args: []string{"--yes"}, sent: true, want: "ago\n"},
		"a dry run asks nothing":         {args: []string{"--dry-run"}, want: "ago\n"},
		"a server dry run asks nothing":  {args: []string{"--dry-run=server"}, want: "ago\n"},
		"nothing to do needs no answer":  {args: []string{"--by", "zoe"}, want: ""},
		"a type that matches nothing":    {args: []string{"--since", "1s"}, want: ""},
		"a named object is not bulk":     {args: []string{"named"}, sent: true, want: "ago\n"},
		"several named ones are neither": {args: []string{"named", "named2"}, sent: true, want: "ago\n"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			sent := 0
			f := clitest.Cluster{Objects: clitest.Fleet(), Hooks: interceptor.Funcs{
				Patch: func(_ context.Context, _ client.WithWatch, _ client.Object, _ client.Patch, options ...client.PatchOption) error {
					var o client.PatchOptions
					o.ApplyOptions(options)
					if len(o.DryRun) == 0 {
						sent++
					}
					return nil
				},
			}}
			args := append([]string{"accept", "--wait=false", "--all"}, tc.args...)
			if len(tc.args) > 0 && strings.HasPrefix(tc.args[0], "named") {
				args = []string{"accept", "--wait=false", "deployment/web", "deployment/fought"}[:2+len(tc.args)]
			}
			got := f.Run(t, verbs, tc.stdin, args...)
			if got.Code != tc.code || !strings.HasSuffix(got.Stderr, tc.want) || (sent > 0) != tc.sent {
				t.Errorf("%q gave %+v and sent %d", args, got, sent)
			}
		})
	}
}

func TestAccept_BulkShowsWhatItIsAboutToAccept(t *testing.T) {
	got := clitest.Cluster{Objects: clitest.Fleet()}.Run(t, verbs, "", "accept", "--all", "--dry-run")
	golden.Check(t, filepath.Join("testdata", "bulk.txt"), got.Stderr+"--- stdout\n"+got.Stdout)
}
