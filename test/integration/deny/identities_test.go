// SPDX-License-Identifier: Apache-2.0

//go:build integration

package deny

import (
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

const hpa = "system:serviceaccount:kube-system:horizontal-pod-autoscaler"

// anybody is a user or service account that may do everything in a shop, so that
// nothing but the policy can stop it.
func (s shop) anybody(t testing.TB, user string, groups ...string) client.Client {
	t.Helper()
	return as(t, user, append([]string{"roots"}, groups...)...)
}

func TestWhoIsTrusted(t *testing.T) {
	s := newShop(t, nil)
	s.guarded(t, func(g *v1alpha1.ClusterSpecGuard) {
		g.Spec.TrustedWriters.Users = []string{"https://issuer.example#carol", "dave"}
		g.Spec.TrustedWriters.Groups = []string{"sre", "system:serviceaccounts:robots"}
		g.Spec.TrustedWriters.ServiceAccountNamespaces = []string{"flux-system"}
	})
	tests := map[string]struct {
		user    string
		groups  []string
		refused bool
	}{
		"a user by name":                                {user: "dave"},
		"a user of an issuer":                           {user: "https://issuer.example#carol"},
		"another user":                                  {user: "dave2", refused: true},
		"a user whose name begins alike":                {user: "dav", refused: true},
		"a name that is no service account's":           {user: "system:serviceaccount:flux-system:a:b", refused: true},
		"a service account without a name":              {user: "system:serviceaccount:flux-system:", refused: true},
		"a member of a group":                           {user: "x", groups: []string{"devs", "sre"}},
		"a member of a group whose name begins alike":   {user: "x", groups: []string{"sre2", "sr"}, refused: true},
		"a member of a thousand groups and a right one": {user: "x", groups: append(manyGroups(1000), "sre")},
		"a member of a thousand others":                 {user: "x", groups: manyGroups(1000), refused: true},
		"a service account by name":                     {user: ci},
		"another account of that namespace":             {user: "system:serviceaccount:cicd:other", refused: true},
		"an account of that name elsewhere":             {user: "system:serviceaccount:cicd2:deployer", refused: true},
		"an account of a trusted namespace":             {user: "system:serviceaccount:flux-system:any"},
		"of a namespace whose name begins alike":        {user: "system:serviceaccount:flux-system-2:any", refused: true},
		"an account by the group of its namespace":      {user: "system:serviceaccount:robots:any"},
		"the assessor":                                  {user: assessorUser, refused: true},
		"a cluster administrator":                       {user: "root", refused: true},
		"a member of system:masters":                    {user: "master", groups: []string{"system:masters"}, refused: true},
		"the garbage collector":                         {user: "system:serviceaccount:kube-system:generic-garbage-collector"},
		"the namespace controller":                      {user: "system:serviceaccount:kube-system:namespace-controller"},
		"the deployment controller, which only writes what it made": {
			user: "system:serviceaccount:kube-system:deployment-controller", refused: true},
		"another account of kube-system":    {user: "system:serviceaccount:kube-system:default", refused: true},
		"an autoscaler that no guard names": {user: hpa, refused: true},
	}
	number := 0
	for name, test := range tests {
		number++
		objectName := fmt.Sprintf("web-%d", number)
		t.Run(name, func(t *testing.T) {
			writer, d := s.anybody(t, test.user, test.groups...), s.deployed(t, objectName)
			acts := map[string]act{"change": setImage, "scale": scaleTo(3), "create": createGenerated}
			for what, act := range acts {
				check(t, what, act(t.Context(), writer, d), test.refused)
			}
			check(t, "delete", remove()(t.Context(), writer, d), test.refused)
		})
	}
}

func check(t testing.TB, what string, err error, isRefused bool) {
	t.Helper()
	switch {
	case isRefused:
		wantRefused(t, err)
	case err != nil:
		t.Errorf("%s: refused: %v", what, err)
	}
}

func manyGroups(n int) []string {
	groups := make([]string, n)
	for i := range groups {
		groups[i] = fmt.Sprintf("group-%d", i)
	}
	return groups
}

// TestATrustedAccountInTheTenantsNamespaceIsTheTenants shows why the reference
// says not to: the ClusterRole edit lets a user act as every service account of
// the namespace.
func TestATrustedAccountInTheTenantsNamespaceIsTheTenants(t *testing.T) {
	s := newShop(t, nil)
	s.guarded(t, func(g *v1alpha1.ClusterSpecGuard) {
		g.Spec.TrustedWriters.ServiceAccounts = append(g.Spec.TrustedWriters.ServiceAccounts,
			v1alpha1.ServiceAccountReference{Namespace: s.namespace, Name: "default"})
	})
	d := s.deployed(t, "web")
	out, err := kubectl(t, "", "-n", s.namespace, "auth", "can-i", "impersonate", "serviceaccount/default", "--as", "tina", "--as-group", "tenants")
	if err != nil || strings.TrimSpace(out) != "yes" {
		t.Errorf("can-i impersonate: %v: %s", err, out)
	}
	bindAccount(t, s)
	wantAllowed(t, setImage(t.Context(), as(t, "system:serviceaccount:"+s.namespace+":default"), d))
}

func bindAccount(t *testing.T, s shop) {
	t.Helper()
	binding := &rbacv1.RoleBinding{
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "edit"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: s.namespace, Name: "default"}},
	}
	binding.Namespace, binding.Name = s.namespace, "default-account"
	mustBind(t, binding)
}

// TestReplicas is the closed list of what Deny leaves to expected writers.
func TestReplicas(t *testing.T) {
	s := newShop(t, nil)
	s.guarded(t, func(g *v1alpha1.ClusterSpecGuard) {
		g.Spec.ExpectedWriters = []v1alpha1.ExpectedWriter{{
			Name: "autoscaler", Paths: []string{"/spec/replicas"},
			Writers: v1alpha1.Writers{ServiceAccounts: []v1alpha1.ServiceAccountReference{{Namespace: "kube-system", Name: "horizontal-pod-autoscaler"}}},
		}}
	})
	tests := map[string]struct {
		user    string
		act     act
		refused bool
	}{
		"the autoscaler through /scale":                {hpa, scaleTo(3), false},
		"the autoscaler on the object":                 {hpa, merge(`{"spec":{"replicas":3}}`), false},
		"the autoscaler, with a restart":               {hpa, merge(`{"spec":{"replicas":3,"template":{"metadata":{"annotations":{"kubectl.kubernetes.io/restartedAt":"x"}}}}}`), false},
		"the autoscaler, with another field":           {hpa, merge(`{"spec":{"replicas":3,"paused":true}}`), true},
		"the autoscaler, with another image":           {hpa, strategic(`{"spec":{"replicas":3,"template":{"spec":{"containers":[{"name":"app","image":"x"}]}}}}`), true},
		"the autoscaler, with an owner":                {hpa, merge(dangling[:len(dangling)-1] + `,"spec":{"replicas":3}}`), true},
		"the autoscaler deletes":                       {hpa, remove(), true},
		"the autoscaler creates":                       {hpa, createGenerated, true},
		"somebody else through /scale":                 {"root", scaleTo(3), true},
		"an autoscaler of that name elsewhere, /scale": {"system:serviceaccount:shop:horizontal-pod-autoscaler", scaleTo(3), true},
	}
	number := 0
	for name, test := range tests {
		number++
		objectName := fmt.Sprintf("web-%d", number)
		t.Run(name, func(t *testing.T) {
			err := test.act(t.Context(), s.anybody(t, test.user), s.deployed(t, objectName))
			if test.refused {
				wantRefused(t, err)
			} else {
				wantAllowed(t, err)
			}
		})
	}
}

func TestReplicasThatTheGuardIgnoresAreFree(t *testing.T) {
	s := newShop(t, nil)
	s.guarded(t, func(g *v1alpha1.ClusterSpecGuard) { g.Spec.Ignore = []string{"/spec/replicas", "/spec/paused"} })
	d := s.deployed(t, "web")
	wantAllowed(t, scaleTo(4)(t.Context(), tenant(t), d))
	wantAllowed(t, merge(`{"spec":{"replicas":5}}`)(t.Context(), tenant(t), d))
	wantRefused(t, merge(`{"spec":{"paused":true}}`)(t.Context(), tenant(t), d))
}

// TestSeveralGuardsMustAllPass: the first that does not trust refuses.
func TestSeveralGuardsMustAllPass(t *testing.T) {
	s := newShop(t, nil)
	s.guarded(t)
	d := s.deployed(t, "web")
	second := guard(s.namespace+"-second", s.namespace)
	second.Spec.TrustedWriters = v1alpha1.Writers{Users: []string{"carol"}}
	mustDo(t, admin.Create(t.Context(), second))
	mustDo(t, awaitEnforced(t.Context(), second))
	wantRefused(t, setImage(t.Context(), as(t, ci), d), "ClusterSpecGuard "+second.Name, "Its trusted writers are: carol.")
	wantRefused(t, setImage(t.Context(), s.anybody(t, "carol"), d), "ClusterSpecGuard "+s.namespace+" ")

	second.Spec.TrustedWriters = v1alpha1.Writers{ServiceAccountNamespaces: []string{"cicd"}}
	mustDo(t, admin.Update(t.Context(), second))
	mustDo(t, awaitEnforced(t.Context(), second))
	wantAllowed(t, setImage(t.Context(), as(t, ci), d))
	mustDo(t, admin.Delete(t.Context(), second))
}

// TestModesThatDoNotDeny: the policy is evaluated for these guards and says nothing.
func TestModesThatDoNotDeny(t *testing.T) {
	for _, mode := range []v1alpha1.GuardMode{v1alpha1.GuardModeAudit, v1alpha1.GuardModeWarn} {
		t.Run(string(mode), func(t *testing.T) {
			s := newShop(t, nil)
			g := s.guarded(t)
			d := s.deployed(t, "web")
			wantRefused(t, setImage(t.Context(), tenant(t), d))
			g.Spec.Mode = mode
			mustDo(t, admin.Update(t.Context(), g))
			eventually(t, "the write to pass", func() error { return setImage(t.Context(), tenant(t), d) })
			if err := probe(t.Context(), g); err != nil {
				t.Errorf("a guard that does not deny answers a probe: %v", err)
			}
		})
	}
}
