// SPDX-License-Identifier: Apache-2.0

//go:build integration

package envoyxds

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	httpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
	"github.com/plumbline-dev/plumbline/test/harness/envoy"
)

// Why clusters have no PINGs of HTTP/2: a server of gRPC, with the options that it has by default,
// ends the connection of a client that sends some while the server has nothing to say, with all
// calls. Envoy can send them at intervals, or before a call when the connection was silent.
func TestAServerOfGRPCEndsTheCallsOfAProxyThatSendsPings(t *testing.T) {
	const pause = 100 * time.Millisecond
	tests := map[string]struct {
		pings *corev3.KeepaliveSettings
		calls int
	}{
		"at intervals":        {&corev3.KeepaliveSettings{Interval: durationpb.New(pause), Timeout: durationpb.New(patience)}, 1},
		"before a fifth call": {&corev3.KeepaliveSettings{ConnectionIdleInterval: durationpb.New(pause), Timeout: durationpb.New(patience)}, 5},
	}
	envoy.EachVersion(t, func(t *testing.T) {
		for name, test := range tests {
			t.Run(name, func(t *testing.T) {
				l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // the server closes it
				must(t, err)
				begun := make(chan struct{}, test.calls)
				s := grpc.NewServer(grpc.UnknownServiceHandler(func(_ any, call grpc.ServerStream) error {
					begun <- struct{}{}
					<-call.Context().Done()
					return nil
				}))
				go func() { _ = s.Serve(l) }() // it ends with the test
				t.Cleanup(s.Stop)
				p, addresses := arranged(t, web(nil, slot("", endpoint(l.Addr().String(), ir.Ready))))
				p.ping(t, test.pings)
				run(t, p, addresses...)
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				ended := make(chan string, test.calls)
				c := client(t, true)
				for i := range test.calls {
					if i > 0 {
						<-begun
						<-time.After(2 * pause) // the server says nothing meanwhile
					}
					go func() { ended <- silent(ctx, c, addresses[0]) }()
				}
				for range test.calls {
					if how := <-ended; how != "14" {
						t.Errorf("a call ended with %s, want the status 14 of gRPC", how)
					}
				}
			})
		}
	})
}

// silent makes a call that is never answered, and returns its status of gRPC.
func silent(ctx context.Context, c *http.Client, address string) string {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+address+"/a.Service/Call", strings.NewReader(emptyMessage))
	if err != nil {
		return err.Error()
	}
	req.Header.Set("Content-Type", grpcType)
	resp, err := c.Do(req)
	if err != nil {
		return err.Error()
	}
	_, err = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close() // read to its end
	if err != nil {
		return err.Error()
	}
	return fmt.Sprint(resp.Header.Get("Grpc-Status"), resp.Trailer.Get("Grpc-Status"))
}

// ping has the proxy send PINGs to endpoints, over one connection to each.
func (p *parts) ping(t *testing.T, how *corev3.KeepaliveSettings) {
	t.Helper()
	const name = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"
	for _, c := range p.clusters {
		options := &httpv3.HttpProtocolOptions{}
		must(t, c.TypedExtensionProtocolOptions[name].UnmarshalTo(options))
		options.GetUseDownstreamProtocolConfig().Http2ProtocolOptions.ConnectionKeepalive = how
		packed, err := anypb.New(options)
		must(t, err)
		c.TypedExtensionProtocolOptions[name] = packed
	}
}
