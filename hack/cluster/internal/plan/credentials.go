// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"net/netip"
	"time"

	"github.com/plumbline-dev/plumbline/hack/cluster/internal/pki"
)

// Names of key pairs that belong to no daemon.
const (
	authorityFile           = "ca"
	frontProxyAuthorityFile = "front-proxy-ca"
	frontProxyFile          = "front-proxy"
	frontProxyName          = "front-proxy"
	signerFile              = "service-account"
	adminFile               = "admin"
)

// client is a holder of a certificate and, if it speaks to the API server as
// itself, of a kubeconfig.
type client struct {
	file       string
	subject    pki.Subject
	kubeconfig bool
}

// clients names who may do what by the users and groups that Kubernetes binds its
// built-in roles to.
func (c Cluster) clients() []client {
	loopback := netip.AddrFrom4([4]byte{127, 0, 0, 1})
	node := c.Network.Node().Addr()
	return []client{
		{APIServer, pki.Subject{
			CommonName: "kube-apiserver",
			DNSNames:   []string{"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local", "localhost"},
			Addresses:  []netip.Addr{loopback, c.Network.API(), node},
		}, false},
		{adminFile, pki.Subject{CommonName: "admin", Organizations: []string{"system:masters"}}, true},
		{ControllerManager, pki.Subject{CommonName: "system:kube-controller-manager"}, true},
		{Scheduler, pki.Subject{CommonName: "system:kube-scheduler"}, true},
		{Proxy, pki.Subject{CommonName: "system:kube-proxy"}, true},
		{Kubelet, pki.Subject{
			CommonName:    "system:node:" + c.NodeName(),
			Organizations: []string{"system:nodes"},
			DNSNames:      []string{c.NodeName()},
			Addresses:     []netip.Addr{loopback, node},
		}, true},
	}
}

// Credentials makes every key, certificate and kubeconfig of the cluster, valid
// from shortly before now.
func (c Cluster) Credentials(now time.Time) ([]File, error) {
	authority, err := pki.NewAuthority("plumbline-"+c.Options.Name, now)
	if err != nil {
		return nil, err
	}
	files := c.pairFiles(authorityFile, authority.Pair)
	for _, holder := range c.clients() {
		pair, err := authority.Issue(holder.subject)
		if err != nil {
			return nil, err
		}
		files = append(files, c.pairFiles(holder.file, pair)...)
		if !holder.kubeconfig {
			continue
		}
		data, err := pki.Kubeconfig("plumbline-"+c.Options.Name, holder.subject.CommonName, c.Server(), authority.Certificate, pair)
		if err != nil {
			return nil, err
		}
		files = append(files, File{c.Layout().Client(holder.file), secretMode, data})
	}
	others, err := c.otherCredentials(now)
	return append(files, others...), err
}

func (c Cluster) otherCredentials(now time.Time) ([]File, error) {
	authority, err := pki.NewAuthority("plumbline-"+c.Options.Name+"-front-proxy", now)
	if err != nil {
		return nil, err
	}
	frontProxy, err := authority.Issue(pki.Subject{CommonName: frontProxyName})
	if err != nil {
		return nil, err
	}
	signer, err := pki.NewSigningKey()
	if err != nil {
		return nil, err
	}
	files := c.pairFiles(frontProxyAuthorityFile, authority.Pair)
	files = append(files, c.pairFiles(frontProxyFile, frontProxy)...)
	return append(files, c.pairFiles(signerFile, signer)...), nil
}

func (c Cluster) pairFiles(name string, pair pki.Pair) []File {
	return []File{
		{c.Layout().Certificate(name), publicMode, pair.Certificate},
		{c.Layout().Key(name), secretMode, pair.Key},
	}
}

// AdministratorFiles lists the files with the authority's certificate, the
// administrator's certificate and the administrator's key.
func (c Cluster) AdministratorFiles() [3]string {
	l := c.Layout()
	return [3]string{l.Certificate(authorityFile), l.Certificate(adminFile), l.Key(adminFile)}
}
