// SPDX-License-Identifier: Apache-2.0

//go:build integration

package ads

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
)

// calls answers gRPC calls with what they bring, and with its name in a trailer.
type calls struct {
	grpc_testing.UnimplementedTestServiceServer
	name string
}

func (c calls) trailer() metadata.MD { return metadata.Pairs("backend", c.name, "end-bin", "\x00\xff") }

func (c calls) UnaryCall(ctx context.Context, r *grpc_testing.SimpleRequest) (*grpc_testing.SimpleResponse, error) {
	if err := grpc.SetTrailer(ctx, c.trailer()); err != nil {
		return nil, err
	}
	return &grpc_testing.SimpleResponse{Payload: r.GetPayload()}, ended(r.GetResponseStatus())
}

func (c calls) StreamingOutputCall(r *grpc_testing.StreamingOutputCallRequest, s grpc.ServerStreamingServer[grpc_testing.StreamingOutputCallResponse]) error {
	s.SetTrailer(c.trailer())
	for range r.GetResponseParameters() {
		if err := s.Send(&grpc_testing.StreamingOutputCallResponse{Payload: r.GetPayload()}); err != nil {
			return err
		}
	}
	return ended(r.GetResponseStatus())
}

func (c calls) FullDuplexCall(s grpc.BidiStreamingServer[grpc_testing.StreamingOutputCallRequest, grpc_testing.StreamingOutputCallResponse]) error {
	s.SetTrailer(c.trailer())
	for {
		r, err := s.Recv()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case r.GetResponseStatus() != nil:
			return ended(r.GetResponseStatus())
		}
		if err := s.Send(&grpc_testing.StreamingOutputCallResponse{Payload: r.GetPayload()}); err != nil {
			return err
		}
	}
}

func ended(with *grpc_testing.EchoStatus) error {
	if with == nil {
		return nil
	}
	return status.Error(codes.Code(with.GetCode()), with.GetMessage()) //nolint:gosec // one of a few
}

func payload(text string) *grpc_testing.Payload {
	return &grpc_testing.Payload{Body: []byte(text)}
}

func unavailable() *grpc_testing.EchoStatus {
	return &grpc_testing.EchoStatus{Code: int32(codes.Unavailable), Message: "later: 50 % ü"}
}

// caller speaks gRPC to an address. Calls that were not sent yet, or that nobody has
// taken up, the library sends once more, as every client of it does; others it does not.
func caller(t testing.TB, address string) grpc_testing.TestServiceClient {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDisableRetry(), grpc.WithDisableServiceConfig())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() }) // its calls have ended
	return grpc_testing.NewTestServiceClient(conn)
}

// callee is a gRPC server of its own.
func callee(t testing.TB, name string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // as a server would
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer()
	grpc_testing.RegisterTestServiceServer(s, calls{name: name})
	go func() { _ = s.Serve(l) }() // until it is stopped
	t.Cleanup(s.Stop)
	return l.Addr().String()
}

// outcome is what a client learns of a call.
type outcome struct {
	Bodies  []string
	Code    codes.Code
	Message string
	Trailer map[string][]string
}

func (o *outcome) heard(p *grpc_testing.Payload) { o.Bodies = append(o.Bodies, string(p.GetBody())) }

func (o *outcome) ended(err error, trailer metadata.MD) {
	o.Code, o.Message = status.Code(err), status.Convert(err).Message()
	o.Trailer = map[string][]string{"backend": trailer.Get("backend"), "end-bin": trailer.Get("end-bin")}
}

func unary(ctx context.Context, c grpc_testing.TestServiceClient, with *grpc_testing.EchoStatus) (o outcome) {
	var trailer metadata.MD
	r, err := c.UnaryCall(ctx, &grpc_testing.SimpleRequest{Payload: payload("one"), ResponseStatus: with}, grpc.Trailer(&trailer))
	if err == nil {
		o.heard(r.GetPayload())
	}
	o.ended(err, trailer)
	return o
}

func streamingOutput(ctx context.Context, c grpc_testing.TestServiceClient, with *grpc_testing.EchoStatus) (o outcome) {
	s, err := c.StreamingOutputCall(ctx, &grpc_testing.StreamingOutputCallRequest{
		Payload: payload("some"), ResponseParameters: make([]*grpc_testing.ResponseParameters, 3), ResponseStatus: with,
	})
	if err != nil {
		return outcome{Code: status.Code(err), Message: err.Error()}
	}
	for {
		r, err := s.Recv()
		if errors.Is(err, io.EOF) {
			err = nil
		} else if err == nil {
			o.heard(r.GetPayload())
			continue
		}
		o.ended(err, s.Trailer())
		return o
	}
}

func fullDuplex(ctx context.Context, c grpc_testing.TestServiceClient, with *grpc_testing.EchoStatus) outcome {
	return conversation(ctx, c, with, func() {})
}

// fullDuplexSlowly takes long enough to see some changes.
func fullDuplexSlowly(ctx context.Context, c grpc_testing.TestServiceClient) outcome {
	tick := time.NewTicker(25 * time.Millisecond)
	defer tick.Stop()
	return conversation(ctx, c, nil, func() { <-tick.C })
}

func conversation(ctx context.Context, c grpc_testing.TestServiceClient, with *grpc_testing.EchoStatus, pause func()) (o outcome) {
	s, err := c.FullDuplexCall(ctx)
	if err != nil {
		return outcome{Code: status.Code(err), Message: err.Error()}
	}
	for i := 0; i < 4 && err == nil; i++ {
		pause()
		if err = s.Send(&grpc_testing.StreamingOutputCallRequest{Payload: payload(fmt.Sprint(i))}); err != nil {
			break
		}
		var r *grpc_testing.StreamingOutputCallResponse
		if r, err = s.Recv(); err == nil {
			o.heard(r.GetPayload())
		}
	}
	if err == nil && with != nil {
		err = s.Send(&grpc_testing.StreamingOutputCallRequest{ResponseStatus: with})
	}
	if err == nil {
		err = s.CloseSend()
	}
	if err == nil {
		if _, err = s.Recv(); errors.Is(err, io.EOF) {
			err = nil
		}
	}
	o.ended(err, s.Trailer())
	return o
}

// What a client of gRPC learns through the proxy is what it learns without one, to the
// last trailer; and what calls come to is counted.
func TestGRPCPassesWithItsTrailers(t *testing.T) {
	address := callee(t, "a")
	shop := service("web", nil, slotOf("", address))
	shop.Ports[0].Protocol = ir.HTTP2
	m := newMesh(t)
	m.serves(shop)
	e, fronts := m.sidecar("web-0", shop)
	direct, through := caller(t, address), caller(t, fronts[0])
	eventually(t, "the proxy serves", func() error {
		if o := unary(t.Context(), through, nil); o.Code != codes.OK {
			return fmt.Errorf("%+v", o)
		}
		return nil
	})
	counted := func(as string) int {
		n, err := e.Stat(t.Context(), `cluster\.shop/web\|80\|\.grpc\.`+as)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	before := map[string]int{"success": counted("success"), "14": counted("14")}
	call := map[string]func(context.Context, grpc_testing.TestServiceClient, *grpc_testing.EchoStatus) outcome{
		"one answer": unary, "many answers": streamingOutput, "both at once": fullDuplex,
	}
	for name, do := range call {
		for ending, with := range map[string]*grpc_testing.EchoStatus{"that is good": nil, "that is 14": unavailable()} {
			t.Run(name+" "+ending, func(t *testing.T) {
				want := do(t.Context(), direct, with)
				if want.Code != status.Code(ended(with)) || len(want.Trailer["backend"]) != 1 {
					t.Fatalf("without a proxy it is %+v", want)
				}
				if diff := cmp.Diff(want, do(t.Context(), through, with)); diff != "" {
					t.Errorf("through the proxy (-without +with):\n%s", diff)
				}
			})
		}
	}
	for as, n := range before {
		poll.Until(t, patience, "three calls are counted as "+as, func() error {
			if more := counted(as) - n; more != 3 {
				return fmt.Errorf("%d", more)
			}
			return nil
		})
	}
}
