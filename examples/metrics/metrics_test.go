package metrics_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.opentelemetry.io/otel/attribute"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/examples/metrics"
)

// happens makes a sign-up, a failed and a successful sign-in.
func happens(t *testing.T, h auth.Hooks) {
	t.Helper()
	w := authtest.New(t, auth.WithHooks(h))
	ctx := context.Background()
	if _, err := w.SignUp(ctx, auth.SignUpParams{Email: "ada@example.com", Password: "correct horse battery"}); err != nil {
		t.Fatal(err)
	}
	for password, want := range map[string]error{"wrong horse battery": auth.CodeInvalidCredentials, "correct horse battery": nil} {
		if _, err := w.Login(ctx, auth.LoginParams{Email: "ada@example.com", Password: password}); !errors.Is(err, want) {
			t.Fatal(err)
		}
	}
}

func TestPrometheus(t *testing.T) {
	r := prometheus.NewRegistry()
	h, err := metrics.Prometheus(r)
	if err != nil {
		t.Fatal(err)
	}
	happens(t, h)
	if err := testutil.GatherAndCompare(r, strings.NewReader(`# HELP auth_events_total Events by type, sign-in method and provider.
# TYPE auth_events_total counter
auth_events_total{method="password",provider="",type="sign_in.failed"} 1
auth_events_total{method="password",provider="",type="user.signed_in"} 2
auth_events_total{method="password",provider="",type="user.signed_up"} 1
`)); err != nil {
		t.Error(err)
	}
	if _, err := metrics.Prometheus(r); err == nil {
		t.Error("registered twice")
	}
}

func TestOpenTelemetry(t *testing.T) {
	reader := sdk.NewManualReader()
	h, err := metrics.OpenTelemetry(sdk.NewMeterProvider(sdk.WithReader(reader)).Meter("auth"))
	if err != nil {
		t.Fatal(err)
	}
	happens(t, h)
	var got metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &got); err != nil {
		t.Fatal(err)
	}
	counts := map[string]int64{}
	for _, p := range got.ScopeMetrics[0].Metrics[0].Data.(metricdata.Sum[int64]).DataPoints {
		of, _ := p.Attributes.Value(attribute.Key("auth.event"))
		counts[of.AsString()] = p.Value
	}
	if counts["user.signed_in"] != 2 || counts["sign_in.failed"] != 1 || counts["user.signed_up"] != 1 {
		t.Errorf("counted %v", counts)
	}
}
