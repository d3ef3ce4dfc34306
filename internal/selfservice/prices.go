package selfservice

import (
	"context"
	"time"

	"modelgate/internal/pricing"

	"modelgate"
)

// priceView is what a model costs. The length of the prompt, the time of day
// and what the reply reports can change the price of a call; see Varies.
type priceView struct {
	Slug string `json:"slug"`
	// Prices is empty where none is known.
	Prices []rateView `json:"prices"`
	Varies bool       `json:"varies"`
	// Upcoming are changes that are announced, at most maxUpcoming.
	Upcoming []changeView `json:"upcoming"`
	// Door is where the model is called, "" where no door serves it.
	Door string `json:"door"`
}

type rateView struct {
	Unit string         `json:"unit"`
	Per  int64          `json:"per"` // how many of the unit the price is for
	USD  modelgate.Nano `json:"usd"`
}

// changeView is a price from an instant on.
type changeView struct {
	From time.Time `json:"from"`
	rateView
}

// maxUpcoming is how many changes of a model's price are listed.
const maxUpcoming = 32

// prices lists what the models of the catalog cost now on the route that a call
// takes, for an end customer what it is billed, and where each is called.
func (a *API) prices(_ context.Context, by actor, _ nothing) ([]priceView, error) {
	models := a.Catalog().Models()
	now, bounds := a.Now(), by.Bounds()
	list := make([]priceView, 0, len(models))
	for _, m := range models {
		view := priceView{Slug: m.Slug, Prices: []rateView{}, Upcoming: []changeView{}}
		if doors := a.doors(m); len(doors) > 0 {
			view.Door = doors[0]
		}
		route, _ := bounds.Route(m)
		if p := m.PriceOn(route); p != nil {
			view.Varies = pricing.Varies(p)
			for _, r := range pricing.At(p, now).List() {
				view.Prices = append(view.Prices, viewRate(r, by.Markup))
			}
			for _, c := range pricing.Changes(p, now, maxUpcoming) {
				view.Upcoming = append(view.Upcoming, changeView{c.From.UTC(), viewRate(c.Rate, by.Markup)})
			}
		}
		list = append(list, view)
	}
	return list, nil
}

// doors are the paths of the doors that serve a model.
func (a *API) doors(m *modelgate.Model) []string {
	if a.Doors == nil {
		return nil
	}
	return a.Doors(m)
}

// viewRate is a price as it is shown to a customer with a markup.
func viewRate(r modelgate.Rate, markup modelgate.Markup) rateView {
	return rateView{r.Unit.String(), r.Per, r.USD.Billed(markup)}
}
