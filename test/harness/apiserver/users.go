// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"fmt"
	"os"
	"strings"

	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// As is a client that acts as a user; policies see that user and no other.
// Service accounts get their groups by themselves.
func As(config *rest.Config, user string, groups ...string) (client.Client, error) {
	return client.New(Impersonate(config, user, groups...), client.Options{Scheme: scheme.Scheme})
}

// Impersonate is a configuration that acts as a user.
func Impersonate(config *rest.Config, user string, groups ...string) *rest.Config {
	impersonated := rest.CopyConfig(config)
	groups = append([]string{"system:authenticated"}, groups...)
	if rest, ok := strings.CutPrefix(user, "system:serviceaccount:"); ok {
		namespace, _, _ := strings.Cut(rest, ":")
		groups = append(groups, "system:serviceaccounts", "system:serviceaccounts:"+namespace)
	}
	impersonated.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: groups}
	return impersonated
}

// Impersonating is how a process with a kubeconfig acts as a user; a service
// account without further groups has its own.
func Impersonating(config *rest.Config, user string, groups ...string) *clientcmdapi.AuthInfo {
	return &clientcmdapi.AuthInfo{
		ClientCertificateData: config.CertData, ClientKeyData: config.KeyData, Impersonate: user, ImpersonateGroups: groups,
	}
}

// WriteKubeconfig writes a file by which somebody reaches the API server of a
// configuration.
func WriteKubeconfig(path string, config *rest.Config, who *clientcmdapi.AuthInfo) error {
	err := clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"c": {Server: config.Host, CertificateAuthorityData: config.CAData}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"u": who},
		Contexts:       map[string]*clientcmdapi.Context{"x": {Cluster: "c", AuthInfo: "u"}},
		CurrentContext: "x",
	}, path)
	if err != nil {
		return fmt.Errorf("writing a kubeconfig: %w", err)
	}
	return nil
}

// Enrol gives a user a certificate, and writes the kubeconfig that logs in with
// it to a file.
func Enrol(server *envtest.Environment, path, user string, groups ...string) error {
	enrolled, err := server.AddUser(envtest.User{Name: user, Groups: groups}, nil)
	if err != nil {
		return fmt.Errorf("enrolling %s: %w", user, err)
	}
	content, err := enrolled.KubeConfig()
	if err != nil {
		return fmt.Errorf("making the kubeconfig of %s: %w", user, err)
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		return fmt.Errorf("writing the kubeconfig of %s: %w", user, err)
	}
	return nil
}
