// SPDX-License-Identifier: Apache-2.0

package routertest

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
)

// Maker makes routers for the suite.
type Maker struct {
	// Begin returns a stand of its own for each check; no requests are divided there yet.
	Begin func(*testing.T) Stand
	// Capabilities are those of its routers, no more and no less.
	Capabilities traffic.Capabilities
	// RoundRobin says that requests without a key go to the variations in turn, so each share is exact
	// to one request. Otherwise each request is drawn.
	RoundRobin bool
}

// Stand has the routers under test.
type Stand interface {
	// Router returns the router of a release: the same one for the same release.
	Router(release types.NamespacedName) traffic.Router
}

// Settler is a stand whose programs take a while to follow their routers.
type Settler interface {
	Stand
	// Settle returns when each program that works divides requests by the split that was applied last.
	Settle()
}

// Asker is a stand whose requests its routers divide.
type Asker interface {
	Stand
	Ask(request Request) (Answer, error)
}

// Counter is a stand whose routers count.
type Counter interface {
	Asker
	// Flush has the routers tell of all requests that were asked until now.
	Flush()
}

// Holder is a stand whose requests can last.
type Holder interface {
	Asker
	// Hold asks for a request that has no answer until end is called.
	Hold(request Request) (to Answer, end func(), err error)
	// Flush has the routers tell of all requests that were asked until now.
	Flush()
}

// Loader is a stand with clients that do not wait for each other.
type Loader interface {
	Asker
	// Load has clients send requests to a Service all the time. stop returns how many were sent since, and how many of
	// them had no answer of a variation.
	Load(service types.NamespacedName) (stop func() (sent, lost int))
}

// Faulty is a stand with a program that fails as programs do.
type Faulty interface {
	Asker
	// Hang has the program follow no router, and tell nothing, until Resume.
	Hang()
	Resume()
	// Restart kills the program and starts it again.
	Restart()
	// Edit sends all requests of a release to its stable variation, past the router, as a person would.
	Edit(release types.NamespacedName)
}

// Orderer is a stand whose programs take a prepared rollback past the API server.
type Orderer interface {
	Asker
	// Order has the programs of a release go on to a split that its router was not told.
	Order(split traffic.Split)
}

// Request is one to a Service. A header or a cookie with an empty value is none.
type Request struct {
	Service types.NamespacedName
	// Headers by name, whose letters may be small or capital, and Cookies by name.
	Headers, Cookies map[string]string
	// Fails has the application answer with an error of the server. A stand that is no Counter need not know it.
	Fails bool
}

// Answer says where a request went.
type Answer struct {
	// Divided says that a split decided it; without one the request goes as the Service has it, and
	// Variation is empty.
	Divided   bool
	Variation traffic.Variation
	// Visitor is the value of the cookie that the client is given; "" if it is given none.
	Visitor string
}
