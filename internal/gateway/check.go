package gateway

import (
	"net/http"
	"strings"

	"modelgate"
	"modelgate/internal/provider"
	"modelgate/internal/provider/reqscan"
)

// limits are what a door or route says of the calls that it takes.
type limits struct {
	query, deferred, stored []string
	makesJobs               bool
}

func limitsOf(row *provider.Route) limits {
	return limits{row.Query, row.Deferred, row.Stored, row.Job != nil}
}

// check refuses what no call on a path of the table may have: query
// parameters that are not known there, members and headers that have the
// provider answer before there is usage to read, unless the path makes jobs,
// and references to stored objects.
func (q *request) check(p *provider.Provider, path string, l limits) error {
	if err := p.JudgeQuery(q.Query, l.query); err != nil {
		return badRequest(err)
	}
	for _, name := range l.deferred {
		if value, ok := q.Fields.Get(name); ok && value.Kind() != reqscan.JSONNull && !value.IsFalse() {
			return modelgate.Errorf(modelgate.BadRequest, "%q is not supported: the answer would come later, where nobody could fetch it; leave it out", name)
		}
	}
	if name := p.Defers(q.header); name != "" && !l.makesJobs {
		return modelgate.Errorf(modelgate.BadRequest, "the header %s is not supported on this path, which makes no task; leave it out", name)
	}
	return q.checkStored(p, path, l.stored)
}

// checkOpen is check for a path of which nothing is known. One that only
// reads takes any query.
func (q *request) checkOpen(p *provider.Provider, path string, row *provider.Route) error {
	if q.pairs && !q.json {
		for _, source := range row.Models {
			if name := source.BodyName(); name != "" && provider.HasParameter(string(q.body), name) {
				return modelgate.Errorf(modelgate.BadRequest, "%q must be named in a JSON body or a form of the type multipart/form-data", name)
			}
		}
	}
	if row.Free {
		return q.checkStored(p, path, row.Stored)
	}
	return q.check(p, path, limitsOf(row))
}

// checkModel reports whether a request to a path of the table names its model: in
// one of the places for that, the first of which says model, and nowhere else
// another one. Free paths may name none.
func (q *request) checkModel(row *provider.Route, model string) error {
	if row.Open || q.method != http.MethodPost {
		return nil
	}
	if model == "" && len(row.Models) > 0 && !row.Free {
		return modelgate.ErrModelDenied
	}
	if len(q.body) > 0 && !q.json && !q.form && !row.Free {
		return modelgate.Errorf(modelgate.BadRequest, "request body must be a JSON object, or a form of the type multipart/form-data")
	}
	return badRequest(provider.Agree(row.Same, &q.Request, model))
}

// checkStored refuses a body that refers to an object kept at the provider, which
// all tenants share: by one of the members at its top, or deeper.
func (q *request) checkStored(p *provider.Provider, path string, members []string) error {
	if p.AllowsStoredObjects() {
		return nil
	}
	const shared = "%q refers to an object stored at the provider, which is shared; "
	for _, name := range members {
		value, inBody := q.Fields.Get(name)
		_, _, inForm := q.Form.Get(name)
		if inBody && value.Kind() != reqscan.JSONNull || inForm {
			return modelgate.Errorf(modelgate.Forbidden, shared+"the operator must allow it (allow_stored_objects)", name)
		}
	}
	if name := q.Fields.Deep(p.StoredDeep()); name != "" {
		return modelgate.Errorf(modelgate.Forbidden, shared+"send its content instead, or have the operator allow it (allow_stored_objects)", name)
	}
	ref := q.Stored(strings.Contains(path, "/responses"), p.StoredSchemes())
	switch {
	case ref.Item:
		return modelgate.Errorf(modelgate.Forbidden, shared+`send "store": false, so that your client sends earlier items whole, or have the operator allow it (allow_stored_objects)`, ref.Name)
	case ref.Name != "":
		return modelgate.Errorf(modelgate.Forbidden, shared+"send its content instead, or have the operator allow it (allow_stored_objects)", ref.Name)
	}
	return nil
}
