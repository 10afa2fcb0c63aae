// SPDX-License-Identifier: Apache-2.0

package adopt

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

const (
	ci   = "system:serviceaccount:ci:deployer"
	hour = time.Hour
)

func TestReport_ProposesWhomTheEvidenceNames(t *testing.T) {
	trustCI := func(q *Question) {
		q.Draft.Spec.TrustedWriters.ServiceAccounts = []v1alpha1.ServiceAccountReference{{Namespace: "ci", Name: "deployer"}}
	}
	unproven := func(q *Question) { q.Installation.StampedSince = time.Time{} }
	cases := map[string]struct {
		question  Question
		existence Existence
		objects   []*metav1.ObjectMeta
		want      summary
	}{
		"a service account whose stamp is proven is trusted": {
			question(), Exists, []*metav1.ObjectMeta{object("shop", "web", stamped(ci), written("pipeline", hour, image))},
			summary{Trusted: []string{"ci/deployer"}},
		},
		// M7 of the guard's review: these two, and those of the guarded namespace below.
		"a service account that writes as people do is to be decided": {
			question(), Exists, []*metav1.ObjectMeta{
				object("shop", "web", stamped(ci), written("pipeline", 48*hour, image)), object("shop", "db", stamped(ci), written("kubectl-set", 48*hour, image)),
			},
			summary{Undecided: []string{ci}},
		},
		"a tenant's own service account is to be decided": {
			question(), Exists, []*metav1.ObjectMeta{object("shop", "web", stamped("system:serviceaccount:shop:debug"), written("pipeline", 48*hour, image))},
			summary{Undecided: []string{"system:serviceaccount:shop:debug"}},
		},
		"one of another namespace that the guard selects is to be decided": {
			question(selecting("shop", "ci")), Exists, []*metav1.ObjectMeta{object("shop", "web", stamped(ci), written("pipeline", 48*hour, image))},
			summary{Undecided: []string{ci}},
		},
		"one of a namespace that the guard does not select is trusted": {
			question(selecting("shop")), Exists, []*metav1.ObjectMeta{object("shop", "web", stamped(ci), written("pipeline", hour, image))},
			summary{Trusted: []string{"ci/deployer"}},
		},
		"one of a namespace whose labels could not be read is to be decided": {
			question(selecting("shop"), func(q *Question) { delete(q.NamespaceLabels, "ci") }), Exists,
			[]*metav1.ObjectMeta{object("shop", "web", stamped(ci), written("pipeline", 48*hour, image))},
			summary{Undecided: []string{ci}},
		},
		"under a guard of all namespaces each account is to be decided, but those of namespaces that are never guarded": {
			question(func(q *Question) { q.Draft.Kind, q.Draft.Namespace = ClusterSpecGuard, "" }), Exists, []*metav1.ObjectMeta{
				object("shop", "web", stamped(ci), written("pipeline", 48*hour, image)),
				object("shop", "db", stamped("system:serviceaccount:plumbline-system:operator"), written("operator", hour, image)),
			},
			summary{Trusted: []string{"plumbline-system/operator"}, Undecided: []string{ci}},
		},
		"Argo CD in a namespace that the guard covers is to be decided": {
			question(selecting("shop", "argocd")), Exists, []*metav1.ObjectMeta{object("shop", "web", written("argocd-controller", 48*hour, image))},
			summary{Undecided: []string{"manager argocd-controller"}},
		},
		"a stamp from before the policy proves nothing": {
			question(), Exists, []*metav1.ObjectMeta{object("shop", "web", stamped(ci), written("helm", 11*24*hour, image))},
			summary{Undecided: []string{"manager helm"}},
		},
		"a stamp without a policy proves nothing": {
			question(unproven), Exists, []*metav1.ObjectMeta{object("shop", "web", stamped(ci), written("kubectl-edit", hour, image))},
			summary{
				Drift:     []string{"web kubectl-edit [/spec/template/spec/containers/[name=app]/image /spec/template/spec/containers/[name=app]/name] by  (Unknown)"},
				Undecided: []string{"manager kubectl-edit"},
			},
		},
		"an account that is gone is not trusted": {
			question(), Absent, []*metav1.ObjectMeta{object("shop", "web", stamped(ci), written("helm", 48*hour, image))},
			summary{Undecided: []string{ci}},
		},
		"an account that could not be read is not trusted": {
			question(), ExistenceUnknown, []*metav1.ObjectMeta{object("shop", "web", stamped(ci), written("helm", 48*hour, image))},
			summary{Undecided: []string{ci}},
		},
		"the default account of a namespace is nobody in particular": {
			question(), Exists, []*metav1.ObjectMeta{object("shop", "web", stamped("system:serviceaccount:shop:default"), written("app", 48*hour, image))},
			summary{Undecided: []string{"system:serviceaccount:shop:default"}},
		},
		"accounts of the cluster itself are not trusted": {
			question(), Exists, []*metav1.ObjectMeta{
				object("shop", "a", stamped("system:serviceaccount:kube-system:expand-controller"), written("x", 48*hour, image)),
				object("shop", "b", stamped("system:node:n1"), written("kubelet", 48*hour, image)),
			},
			summary{Undecided: []string{"system:node:n1", "system:serviceaccount:kube-system:expand-controller"}},
		},
		"Argo CD is known by its manager": {
			question(), Exists, []*metav1.ObjectMeta{object("shop", "web", written("argocd-controller", hour, image))},
			summary{Trusted: []string{"argocd/argocd-application-controller"}},
		},
		"without its usual account Argo CD is to be decided": {
			question(), Absent, []*metav1.ObjectMeta{object("shop", "web", written("argocd-controller", 25*hour, image))},
			summary{Undecided: []string{"manager argocd-controller"}},
		},
		"a person's edit is drift, and the person to be decided": {
			question(trustCI), Exists, []*metav1.ObjectMeta{object("shop", "web", stamped("alice"), written("helm", 48*hour, image), written("kubectl-edit", hour, replicas))},
			summary{
				Trusted:   []string{"ci/deployer"},
				Drift:     []string{"web kubectl-edit [/spec/replicas] by alice (Untrusted)"},
				Undecided: []string{"manager helm", "alice"},
			},
		},
		"two managers in one second leave the stamp without an owner": {
			question(), Exists, []*metav1.ObjectMeta{object("shop", "web", stamped(ci), written("helm", hour, image), written("kubectl-edit", hour, replicas))},
			summary{
				Drift: []string{
					"web helm [/spec/template/spec/containers/[name=app]/image /spec/template/spec/containers/[name=app]/name] by  (Unknown)",
					"web kubectl-edit [/spec/replicas] by  (Unknown)",
				},
				Undecided: []string{"manager helm", "manager kubectl-edit"},
			},
		},
		"a restart, a label and the status are no drift": {
			question(), Exists, []*metav1.ObjectMeta{object("shop", "web",
				written("kubectl-rollout", hour, restart), written("kubectl-label", hour, labels), through("status", "kube-controller-manager", hour, status))},
			summary{},
		},
		"an object of the last day that nobody trusted created is drift as a whole": {
			question(), Exists, []*metav1.ObjectMeta{object("shop", "new", createdAt(hour), stamped("bob"), written("kubectl-create", hour, replicas))},
			summary{Drift: []string{"new kubectl-create [/spec/replicas] by bob (Untrusted) created"}, Undecided: []string{"bob"}},
		},
		"an autoscaler may move the replicas of its targets": {
			question(hpa("web")), Exists, []*metav1.ObjectMeta{object("shop", "web", through("scale", "kube-controller-manager", 0, replicas))},
			summary{Expected: []string{"autoscaler: kube-system/horizontal-pod-autoscaler [/spec/replicas]"}},
		},
		"a scale by hand leaves no time": {
			question(hpa("web")), Exists, []*metav1.ObjectMeta{object("shop", "web", through("scale", "kubectl", 0, replicas))},
			summary{
				Expected: []string{"autoscaler: kube-system/horizontal-pod-autoscaler [/spec/replicas]"},
				Undated:  []string{"web kubectl [/spec/replicas] by  (Unknown)"}, Undecided: []string{"manager kubectl"},
			},
		},
		"without its usual account an autoscaler is to be decided": {
			question(hpa("web")), Absent, []*metav1.ObjectMeta{object("shop", "web", through("scale", "kube-controller-manager", 0, replicas))},
			summary{Undated: []string{"web kube-controller-manager [/spec/replicas] by  (Unknown)"}, Undecided: []string{"system:serviceaccount:kube-system:horizontal-pod-autoscaler"}},
		},
		"an autoscaler that the draft knows is not named twice": {
			question(hpa("web"), func(q *Question) {
				q.Draft.Spec.ExpectedWriters = []v1alpha1.ExpectedWriter{{
					Name: "mine", Paths: []string{"/spec/replicas"},
					Writers: v1alpha1.Writers{ServiceAccounts: []v1alpha1.ServiceAccountReference{autoscalerAccount}},
				}}
			}), Exists, []*metav1.ObjectMeta{object("shop", "web")},
			summary{Expected: []string{"mine: kube-system/horizontal-pod-autoscaler [/spec/replicas]"}},
		},
		"fields that cannot be read stand for the whole object": {
			question(), Exists, []*metav1.ObjectMeta{object("shop", "web", written("odd", hour, `{"f:spec":`))},
			summary{Drift: []string{"web odd [] by  (Unknown)"}, Undecided: []string{"manager odd"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := summarize(survey(t, tc.question, tc.existence, tc.objects...))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("report (-want +got):\n%s", diff)
			}
		})
	}
}
