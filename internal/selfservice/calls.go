package selfservice

import (
	"context"

	"modelgate/internal/callquery"
)

// asker is the caller, who asks about calls.
func (by actor) asker() callquery.Asker {
	return callquery.Asker{Client: by.ClientID, SubAccountID: by.SubAccountID, Markup: by.Markup}
}

func (x *exchange) asks() callquery.Exchange {
	return callquery.Exchange{W: x.w, R: x.r, By: x.asker()}
}

// calls is GET /gw/calls.
func (a *API) calls(ctx context.Context, x *exchange) error {
	var q callquery.Calls
	if err := x.read(func(x *exchange) error { return q.Read(x.query, x.asker(), a.Now()) }); err != nil {
		return err
	}
	a.settle(ctx)
	return a.questions.ServeCalls(ctx, x.asks(), &q)
}

// report is GET /gw/report.
func (a *API) report(ctx context.Context, x *exchange) error {
	var q callquery.Report
	if err := x.read(func(x *exchange) error { return q.Read(x.query, x.asker(), a.Now()) }); err != nil {
		return err
	}
	a.settle(ctx)
	return a.questions.ServeReport(ctx, x.asks(), &q)
}
