from papers.smoothed_curves_at(3);
