package operator

import (
	"context"

	"modelgate/internal/callquery"
)

// everybody asks about the calls of all organizations.
func everybody() callquery.Asker { return callquery.Asker{Operator: true} }

// asks is a question about the calls of all organizations.
func (x *exchange) asks() callquery.Exchange {
	return callquery.Exchange{W: x.w, R: x.r, By: everybody()}
}

// calls lists calls across organizations.
func (a *API) calls(ctx context.Context, x *exchange) (any, error) {
	var q callquery.Calls
	if err := x.answered(q.Read(x.query, everybody(), a.Now())); err != nil {
		return nil, err
	}
	return written{}, a.questions.ServeCalls(ctx, x.asks(), &q)
}

// report sums calls across organizations.
func (a *API) report(ctx context.Context, x *exchange) (any, error) {
	var q callquery.Report
	if err := x.answered(q.Read(x.query, everybody(), a.Now())); err != nil {
		return nil, err
	}
	return written{}, a.questions.ServeReport(ctx, x.asks(), &q)
}

// written is the answer of an endpoint that has written it already.
type written struct{}

// answered ends the reading of a request's parameters, of which a fault in their
// form is told before one in what they ask for.
func (x *exchange) answered(err error) error {
	if wrong := x.ready(); wrong != nil {
		return wrong
	}
	return err
}
