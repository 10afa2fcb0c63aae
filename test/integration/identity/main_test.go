// SPDX-License-Identifier: Apache-2.0

//go:build integration

package identity

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/plumbline-dev/plumbline/test/harness/apiserver"
	"github.com/plumbline-dev/plumbline/test/harness/rendered"
	"github.com/plumbline-dev/plumbline/test/harness/waits"
)

const (
	// patience bounds every wait; the machine may be busy.
	patience = 40 * time.Second
	// xds may do what a Verifier needs and nothing else; blind may not read the keys.
	xds, blind = "plumbline-xds", "blind"
)

// One API server serves all tests; each has a namespace of its own.
var (
	config *rest.Config
	admin  *kubernetes.Clientset
)

// keys and reviews are all the rights that there are to give.
var (
	keys    = rbacv1.PolicyRule{NonResourceURLs: []string{"/.well-known/openid-configuration", "/openid/v1/jwks"}, Verbs: []string{"get"}}
	reviews = rbacv1.PolicyRule{APIGroups: []string{"authentication.k8s.io"}, Resources: []string{"tokenreviews"}, Verbs: []string{"create"}}
)

func TestMain(m *testing.M) {
	code, err := runTests(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "integration tests of identity:", err)
		code = 1
	}
	os.Exit(code)
}

func runTests(m *testing.M) (code int, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	server, err := apiserver.Start()
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	config = server.Config
	if admin, err = kubernetes.NewForConfig(config); err != nil {
		return 1, fmt.Errorf("building a client: %w", err)
	}
	if err := setUp(ctx); err != nil {
		return 1, err
	}
	return m.Run(), nil
}

func setUp(ctx context.Context) error {
	if err := takeDefaultRight(ctx); err != nil {
		return err
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: rendered.Namespace}}
	if _, err := admin.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("creating Plumbline's namespace: %w", err)
	}
	return errors.Join(account(ctx, xds, keys, reviews), account(ctx, blind, reviews))
}

// takeDefaultRight takes away what clusters give every service account, so that the
// rights of these tests are those that are needed.
func takeDefaultRight(ctx context.Context) error {
	const name = "system:service-account-issuer-discovery"
	return waits.Until(ctx, patience, "the binding "+name+" is deleted", func(ctx context.Context) error {
		return admin.RbacV1().ClusterRoleBindings().Delete(ctx, name, metav1.DeleteOptions{})
	})
}

// account makes a service account in Plumbline's namespace with some rights.
func account(ctx context.Context, name string, rules ...rbacv1.PolicyRule) error {
	meta := metav1.ObjectMeta{Name: name}
	_, accountErr := admin.CoreV1().ServiceAccounts(rendered.Namespace).Create(ctx, &corev1.ServiceAccount{ObjectMeta: meta}, metav1.CreateOptions{})
	_, roleErr := admin.RbacV1().ClusterRoles().Create(ctx, &rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules}, metav1.CreateOptions{})
	_, bindingErr := admin.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: rendered.Namespace, Name: name}},
	}, metav1.CreateOptions{})
	return errors.Join(accountErr, roleErr, bindingErr)
}

// as is a configuration that logs in as one of our accounts.
func as(t testing.TB, account string) *rest.Config {
	t.Helper()
	token := request(t, rendered.Namespace, account, authenticationv1.TokenRequestSpec{})
	return &rest.Config{Host: config.Host, BearerToken: token, TLSClientConfig: rest.TLSClientConfig{CAData: config.CAData}}
}

// request asks for a token as a kubelet does.
func request(t testing.TB, namespace, account string, spec authenticationv1.TokenRequestSpec) string {
	t.Helper()
	answer, err := admin.CoreV1().ServiceAccounts(namespace).CreateToken(t.Context(), account, &authenticationv1.TokenRequest{Spec: spec}, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("asking for a token of %s/%s: %v", namespace, account, err)
	}
	return answer.Status.Token
}
