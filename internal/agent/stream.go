// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"

	"github.com/plumbline-dev/plumbline/internal/agent/follow"
)

// Server is where the discovery server is, and how it is reached.
type Server struct {
	// Addresses of replicas, host:port, of which one is asked at a time.
	Addresses []string
	// Name that the certificate has; empty for the host of the address.
	Name string
	// TokenFile and CAFile are read for each connection, since both rotate.
	TokenFile, CAFile string
	// Node is the id of the agent, NAMESPACE/POD; Version is that of the program, for people.
	Node    string
	Version [3]uint32
}

// Pauses between two connections.
const (
	pauseFirst, pauseMost = 500 * time.Millisecond, 10 * time.Second
	// maxResponse is what the server sends at once, in bytes.
	maxResponse = 16 << 20
)

// event of a stream: it was opened, brought a response, or has ended.
type event struct {
	opened   *stream
	response *follow.Response
}

// stream that is open.
type stream struct {
	client discovery.AggregatedDiscoveryService_DeltaAggregatedResourcesClient
	node   *corev3.Node
	end    context.CancelFunc
}

// send a request. A stream that is broken says so to its reader as well.
func (s *stream) send(r follow.Request) {
	message := requestOf(r)
	message.Node, s.node = s.node, nil
	if s.client.Send(message) != nil {
		s.end()
	}
}

// follow keeps a stream open until ctx ends.
func (a *Agent) follow(ctx context.Context) {
	pause := pauseFirst
	for turn := rand.N(1 << 16); ; turn++ { //nolint:gosec // replicas share the agents
		address := a.config.Server.Addresses[turn%len(a.config.Server.Addresses)]
		began := time.Now()
		heard, err := a.connect(ctx, address)
		if ctx.Err() != nil {
			return
		}
		a.config.Log.Info("agent.disconnected", "server", address, "after", time.Since(began).String(), "reason", fmt.Sprint(err))
		if heard {
			pause = pauseFirst
		}
		wait(ctx, rand.N(pause)) //nolint:gosec // jitter
		pause = min(2*pause, pauseMost)
	}
}

func wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// connect to a replica, and hand over what comes until the stream ends; heard says whether anything
// came.
func (a *Agent) connect(ctx context.Context, address string) (heard bool, err error) {
	conn, err := a.config.Server.dial(address)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	ctx, end := context.WithCancel(ctx)
	defer end()
	authorized, err := a.config.Server.authorize(ctx)
	if err != nil {
		return false, err
	}
	client, err := discovery.NewAggregatedDiscoveryServiceClient(conn).DeltaAggregatedResources(authorized)
	if err != nil {
		return false, fmt.Errorf("opening a stream: %w", err)
	}
	if !a.pass(ctx, event{opened: &stream{client: client, node: a.config.Server.node(a.connector.Kind()), end: end}}) {
		return false, nil
	}
	a.current.Store(&address)
	defer a.pass(context.WithoutCancel(ctx), event{}) // the loop outlives the stream
	for {
		message, err := client.Recv()
		if err != nil {
			return heard, fmt.Errorf("reading the stream: %w", err)
		}
		response, known, err := responseOf(message)
		if err != nil {
			return heard, err
		}
		heard = true
		if known && !a.pass(ctx, event{response: &response}) {
			return heard, nil
		}
	}
}

// pass an event to the loop; false if there is none any more.
func (a *Agent) pass(ctx context.Context, e event) bool {
	select {
	case a.events <- e:
		return true
	case <-ctx.Done():
		return false
	case <-a.ended:
		return false
	}
}

func (s Server) dial(address string) (*grpc.ClientConn, error) {
	authority, err := os.ReadFile(s.CAFile)
	if err != nil {
		return nil, fmt.Errorf("reading the CA certificates: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(authority) {
		return nil, fmt.Errorf("reading the CA certificates: %s has no certificate", s.CAFile)
	}
	conn, err := grpc.NewClient("dns:///"+address,
		grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{RootCAs: roots, ServerName: s.Name, MinVersion: tls.VersionTLS13})),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 30 * time.Second, Timeout: 10 * time.Second}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxResponse)), grpc.WithDisableServiceConfig(), grpc.WithDisableRetry(), grpc.WithNoProxy())
	if err != nil {
		return nil, fmt.Errorf("connecting to %s: %w", address, err)
	}
	return conn, nil
}

// authorize a stream with the token as it is now.
func (s Server) authorize(ctx context.Context) (context.Context, error) {
	token, err := os.ReadFile(s.TokenFile)
	if err != nil {
		return nil, fmt.Errorf("reading the token: %w", err)
	}
	return metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+strings.TrimSpace(string(token))), nil
}

// node is what the agent says about itself.
func (s Server) node(kind string) *corev3.Node {
	return &corev3.Node{
		Id: s.Node, Cluster: strings.SplitN(s.Node, "/", 2)[0], UserAgentName: kind,
		UserAgentVersionType: &corev3.Node_UserAgentBuildVersion{UserAgentBuildVersion: &corev3.BuildVersion{
			Version: &typev3.SemanticVersion{MajorNumber: s.Version[0], MinorNumber: s.Version[1], Patch: s.Version[2]},
		}},
	}
}
