// SPDX-License-Identifier: Apache-2.0

package lift

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/plumbline-dev/plumbline/internal/cli/clitest"
	"github.com/plumbline-dev/plumbline/internal/cli/invocation"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

var verbs = []func(*invocation.Invocation) *cobra.Command{Command}

func web(change ...func(*v1alpha1.Baseline)) *v1alpha1.Baseline {
	quarantine := func(b *v1alpha1.Baseline) {
		b.Status.Quarantine = &v1alpha1.Quarantine{Token: "plan-0", By: "RemediationPlan/p", StartTime: metav1.NewTime(clitest.Before(0).Time)}
	}
	return clitest.BaselineOf("web", append([]func(*v1alpha1.Baseline){
		clitest.Drifted(clitest.Found("/spec/replicas", "1", "5", "alice", time.Minute)), quarantine,
	}, change...)...)
}

func TestLift(t *testing.T) {
	for name, tc := range map[string]struct {
		object client.Object
		args   []string
		want   clitest.Answer
		asked  bool
	}{
		"a request is sent":              {web(), []string{"deployment/web", "--wait=false"}, clitest.Answer{Stdout: "shop/deployment.apps/web lift requested\n"}, true},
		"a dry run sends none":           {web(), []string{"deployment/web", "--dry-run"}, clitest.Answer{Stdout: "shop/deployment.apps/web lifted (dry run)\n"}, false},
		"nothing to do is no failure":    {clitest.BaselineOf("web"), []string{"deployment/web"}, clitest.Answer{Stdout: "shop/deployment.apps/web is not in quarantine\n"}, false},
		"without a name nothing is sent": {web(), nil, clitest.Answer{Code: 1, Stderr: "name objects as TYPE/NAME"}, false},
		"a type alone is no name":        {web(), []string{"deployment"}, clitest.Answer{Code: 1, Stderr: "name objects as TYPE/NAME"}, false},
		"a reason that is too long":      {web(), []string{"deployment/web", "--reason", strings.Repeat("x", 257)}, clitest.Answer{Code: 1, Stderr: "--reason has 257 characters, more than 256"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			var asked *v1alpha1.LiftRequest
			f := clitest.Cluster{Objects: []client.Object{tc.object}, Hooks: interceptor.Funcs{
				Patch: func(ctx context.Context, api client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
					err := api.Patch(ctx, object, patch, options...)
					asked = object.(*v1alpha1.Baseline).Spec.Lift
					return err
				},
			}}
			got := f.Run(t, verbs, "", append([]string{"lift"}, tc.args...)...)
			if got.Code != tc.want.Code || !strings.Contains(got.Stdout, tc.want.Stdout) || !strings.Contains(got.Stderr, tc.want.Stderr) {
				t.Errorf("got %+v", got)
			}
			if (asked != nil) != tc.asked || asked != nil && (asked.Token != "plan-0" || asked.RequestedBy == "") {
				t.Errorf("asked is %+v", asked)
			}
		})
	}
}

func TestLiftWaitsForTheAssessor(t *testing.T) {
	for name, tc := range map[string]struct {
		answer func(*v1alpha1.Baseline)
		want   clitest.Answer
	}{
		"that ends the quarantine": {func(b *v1alpha1.Baseline) { b.Status.Quarantine = nil }, clitest.Answer{Stdout: "shop/deployment.apps/web lifted\n"}},
		"that refuses the request": {func(b *v1alpha1.Baseline) {
			b.Spec.Lift = nil
			b.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionAcceptanceAllowed, Status: metav1.ConditionFalse, Message: "bob may not lift the quarantine"}}
		}, clitest.Answer{Code: 1, Stderr: "error: the quarantine of shop/deployment.apps/web was not lifted: bob may not lift the quarantine\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := clitest.Cluster{Objects: []client.Object{web()}, Hooks: interceptor.Funcs{
				Watch: func(ctx context.Context, api client.WithWatch, _ client.ObjectList, _ ...client.ListOption) (watch.Interface, error) {
					current := &v1alpha1.Baseline{}
					if err := api.Get(ctx, client.ObjectKey{Namespace: "shop", Name: "deployments.apps.web"}, current); err != nil {
						return nil, err
					}
					tc.answer(current)
					w := watch.NewFakeWithChanSize(1, false)
					w.Modify(current)
					return w, nil
				},
			}}
			if d := cmp.Diff(tc.want, f.Run(t, verbs, "", "lift", "deployment/web")); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}
