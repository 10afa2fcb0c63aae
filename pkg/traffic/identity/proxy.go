// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"strings"
	"time"
)

// Audience is that of the tokens of proxies. A token for the API server is none for
// us, and ours is none for the API server.
const Audience = "plumbline-xds"

// Proxy is who is at the other end of a stream.
type Proxy struct {
	Namespace, ServiceAccount, Pod, PodUID string
	// Expires is the end of the token.
	Expires time.Time
	// Reviewed: the API server was asked, the keys or the cache were not enough.
	Reviewed bool
}

// Pods is a cache of pods.
type Pods interface {
	// Pod is the pod of that name, if it is known.
	Pod(namespace, name string) (uid, serviceAccount string, found bool)
}

// Bearer is the token in the values of an authorization header. A second value is
// refused: who reads the first and who reads the last would disagree.
func Bearer(authorization []string) (string, error) {
	if len(authorization) == 0 {
		return "", refuse(ReasonMissing)
	}
	scheme, token, _ := strings.Cut(authorization[0], " ")
	switch {
	case len(authorization) > 1, !strings.EqualFold(scheme, "Bearer"):
		return "", refuse(ReasonMalformed)
	case token == "":
		return "", refuse(ReasonMissing)
	}
	return token, nil
}
