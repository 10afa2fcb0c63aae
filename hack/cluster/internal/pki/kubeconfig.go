// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"encoding/json"
	"fmt"
)

type kubeconfig struct {
	APIVersion     string         `json:"apiVersion"`
	Kind           string         `json:"kind"`
	CurrentContext string         `json:"current-context"`
	Clusters       []namedCluster `json:"clusters"`
	Users          []namedUser    `json:"users"`
	Contexts       []namedContext `json:"contexts"`
}

type namedCluster struct {
	Name    string `json:"name"`
	Cluster struct {
		Server    string `json:"server"`
		Authority []byte `json:"certificate-authority-data"`
	} `json:"cluster"`
}

type namedUser struct {
	Name string `json:"name"`
	User struct {
		Certificate []byte `json:"client-certificate-data"`
		Key         []byte `json:"client-key-data"`
	} `json:"user"`
}

type namedContext struct {
	Name    string `json:"name"`
	Context struct {
		Cluster string `json:"cluster"`
		User    string `json:"user"`
	} `json:"context"`
}

// Kubeconfig is a kubeconfig file, in JSON, with one context: user at the named
// cluster, whose API is at server, for example "https://10.192.255.2:6443".
func Kubeconfig(cluster, user, server string, authority []byte, client Pair) ([]byte, error) {
	entry := namedCluster{Name: cluster}
	entry.Cluster.Server, entry.Cluster.Authority = server, authority
	person := namedUser{Name: user}
	person.User.Certificate, person.User.Key = client.Certificate, client.Key
	joined := namedContext{Name: cluster}
	joined.Context.Cluster, joined.Context.User = cluster, user
	data, err := json.MarshalIndent(kubeconfig{
		APIVersion: "v1", Kind: "Config", CurrentContext: cluster,
		Clusters: []namedCluster{entry}, Users: []namedUser{person}, Contexts: []namedContext{joined},
	}, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encoding the kubeconfig of %s: %w", user, err)
	}
	return append(data, '\n'), nil
}
